"""The image engine: fetch, verify, unpack and keep the bytes of images on one host.

May import ports, flow and domain. `linux` is the only module of the product that uses ctypes. Everything
that comes out of an image or an archive is hostile here.
"""
