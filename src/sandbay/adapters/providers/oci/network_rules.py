"""What a network of sandboxes consists of, as text and values: names, subnet, packet rules, CNI's configuration, files.

All rules lie in two nftables tables of our own, so that one transaction installs them and one removes them, and no
rule of anybody else is read or changed. What a rule of somebody else drops stays dropped.
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

INTERFACE = "eth0"
"""The sandbox's own."""

DENIED = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/3",
)
"""Private, shared and link-local ranges, what is no unicast, and the metadata services that lie elsewhere.

Clouds answer at 169.254.169.254, 100.100.100.200, 192.0.0.192 and 168.63.129.16; by IPv6 nothing is reached at all.
"""

_POOLS = ("198.18.0.0/15", "10.128.0.0/9", "172.16.0.0/12", "192.168.0.0/16")
"""Where a subnet is looked for. The first is reserved for laboratories, so companies and clouds rarely route it."""
_PREFIX = 20
_NAMESERVERS = 3
FAMILIES = ("inet", "bridge")
"""Of packet rules. Each has a table of our name."""


@dataclass(frozen=True)
class Net:
    """One installation's network. `name` is that of its bridge and of its table."""

    name: str
    installation: str
    subnet: IPv4Network
    nameservers: Sequence[str]
    allowed: Sequence[str] = ()


def net_name(owner: str) -> str:
    """A name that no other installation on this host has; interface names end at 15 characters."""
    return "sby" + hashlib.sha256(owner.encode()).hexdigest()[:12]


def label(installation: str, *more: str) -> str:
    """What the host shows people at everything that we make."""
    return ":".join(("sandbay", installation, *more))


def free_subnet(owner: str, taken: Iterable[str]) -> IPv4Network | None:
    """A subnet that overlaps none of `taken` (addresses and ranges), or None when there is none.

    `owner` says where to begin, so that two installations on one host rarely meet.
    """
    others = [ipaddress.IPv4Network(each, strict=False) for each in taken]
    start = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:4], "big")
    for pool in map(IPv4Network, _POOLS):
        count = 1 << (_PREFIX - pool.prefixlen)
        for step in range(count):
            first = int(pool.network_address) + ((start + step) % count << (32 - _PREFIX))
            subnet = IPv4Network((first, _PREFIX))
            if not any(subnet.overlaps(other) for other in others):
                return subnet
    return None


def nameservers(*texts: str) -> tuple[str, ...]:
    """The first of `resolv.conf` files that names servers which a sandbox can ask: IPv4, and not the loopback's."""
    for text in texts:
        words = [line.split() for line in text.splitlines()]
        found = [word[1] for word in words if len(word) > 1 and word[0] == "nameserver" and _can_be_asked(word[1])]
        if found:
            return tuple(found[:_NAMESERVERS])
    return ()


def _can_be_asked(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)


def cni_configuration(name: str, subnet: IPv4Network, leases: str, mtu: int) -> dict[str, object]:
    """For CNI's bridge plugin. Masquerading is in our own table, so the plugin makes no rules."""
    return {
        "cniVersion": "0.4.0",
        "name": name,
        "type": "bridge",
        "bridge": name,
        "isDefaultGateway": True,
        "mtu": mtu,
        "ipam": {"type": "host-local", "dataDir": leases, "ranges": [[{"subnet": str(subnet)}]]},
    }


def remove_rules(name: str) -> str:
    """One transaction, for `nft`: the tables are gone, whether or not they were there."""
    tables = [f"{family} {name}" for family in FAMILIES]
    return "".join(f"add table {table}\ndelete table {table}\n" for table in tables)


def install_rules(net: Net) -> str:
    """One transaction, for `nft`: the tables as they are to be, whatever of them was there.

    What goes to the host itself passes `input`, what goes anywhere else `forward`, after any address translation of
    the host's, so that a port which the host forwards to a private address is as unreachable as that address.
    Nobody outside begins a connection to a sandbox. From sandbox to sandbox a packet would only pass the bridge.
    """
    return (
        remove_rules(net.name)
        + f"""table inet {net.name} {{
    comment "{label(net.installation)}"
    set denied {{ type ipv4_addr; flags interval; elements = {{ {", ".join(DENIED)} }} }}
    set allowed {{ type ipv4_addr; flags interval; auto-merge; {_elements(net.allowed)} }}
    set nameservers {{ type ipv4_addr; {_elements(net.nameservers)} }}
    chain allowed {{
        ip saddr {net.subnet} ip daddr @allowed accept
        ip saddr {net.subnet} ip daddr @nameservers meta l4proto {{ tcp, udp }} th dport 53 accept
    }}
{_judgement(net)}
    chain postrouting {{
        type nat hook postrouting priority 100; policy accept;
        ip saddr {net.subnet} oifname != "{net.name}" masquerade
    }}
}}
table bridge {net.name} {{
    comment "{label(net.installation)}"
    chain forward {{
        type filter hook forward priority -10; policy accept;
        ip daddr {net.subnet} drop
    }}
}}
"""
    )


def _judgement(net: Net) -> str:
    """The chains that decide. Refused connections are told so at once, rather than left to time out."""
    refuse = "reject with icmpx type admin-prohibited"
    return f"""    chain outgoing {{
        meta nfproto != ipv4 drop
        ip saddr != {net.subnet} drop
        oifname "{net.name}" {refuse}
        jump allowed
        ip daddr @denied {refuse}
    }}
    chain input {{
        type filter hook input priority -10; policy accept;
        iifname != "{net.name}" accept
        jump allowed
        meta nfproto ipv4 {refuse}
        drop
    }}
    chain forward {{
        type filter hook forward priority -10; policy accept;
        iifname "{net.name}" jump outgoing
        oifname "{net.name}" ct state established,related accept
        oifname "{net.name}" drop
    }}"""


def _elements(addresses: Sequence[str]) -> str:
    return f"elements = {{ {', '.join(sorted(set(addresses)))} }};" if addresses else ""


def resolv_conf(servers: Sequence[str]) -> str:
    """The sandbox's file."""
    return "".join(f"nameserver {server}\n" for server in servers)


def hosts_file(hostname: str, address: str | None = None) -> str:
    """The sandbox's file, without its own line while the address is not known."""
    own = f"{address}\t{hostname}\n" if address else ""
    return f"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{own}"
