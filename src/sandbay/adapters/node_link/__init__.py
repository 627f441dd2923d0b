"""The node_link port: how Core and a node talk, one module per transport.

May import ports and domain. The modules do not import each other.
"""
