"""Typed ids. The prefix carries the kind, so an id never passes for a name or for another kind's id.

Making one needs randomness and is therefore a port (`ports.ids`); this module only knows the shapes.
"""

import re
from typing import NewType

ImageId = NewType("ImageId", str)
ReleaseId = NewType("ReleaseId", str)
SessionId = NewType("SessionId", str)
FrozenId = NewType("FrozenId", str)
AllocationId = NewType("AllocationId", str)
NodeId = NewType("NodeId", str)
PoolId = NewType("PoolId", str)
ProjectId = NewType("ProjectId", str)
KeyId = NewType("KeyId", str)
UploadId = NewType("UploadId", str)
ExecId = NewType("ExecId", str)
TemplateId = NewType("TemplateId", str)
PublishId = NewType("PublishId", str)
PromotionId = NewType("PromotionId", str)
SnapshotId = NewType("SnapshotId", str)

PREFIXES: dict[str, str] = {
    "image": "img_",
    "release": "rel_",
    "session": "ses_",
    "frozen": "frz_",
    "allocation": "alo_",
    "node": "node_",
    "pool": "pool_",
    "project": "prj_",
    "key": "key_",
    "upload": "upl_",
    "exec": "exe_",
    "template": "tmp_",
    "publish": "pub_",
    "promotion": "prm_",
    "snapshot": "snp_",
    "audit": "aud_",
    "installation": "ins_",
}
"""Kind → prefix. The underscore keeps every id out of the slugs that names are made of."""

SUFFIX_LENGTH = 20
_ID = re.compile(r"([a-z]{3,4}_)[0-9a-z]{20}")
_KINDS = {prefix: kind for kind, prefix in PREFIXES.items()}


def kind_of(text: str) -> str | None:
    """The kind of a well-formed id, or None when the text is no id of ours."""
    match = _ID.fullmatch(text)
    return _KINDS.get(match[1]) if match else None
