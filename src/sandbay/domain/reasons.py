"""Every "no" has a name: the one enum that API, CLI, SDK, documentation and node diagnostics share.

A member is stable on the wire. The enum holds what the product can produce today; a test holds each
member against the public API. HTTP statuses are not known here: `api.errors` maps them, once.
"""

from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    """What kind of "no" it is; exceptions of the SDK are named after it."""

    REFERENCE = "reference"
    CHOOSING = "choosing"
    PLACEMENT = "placement"
    START = "start"
    REQUEST = "request"
    CONTENT = "content"
    TRANSFER = "transfer"
    ROOM = "room"
    STATE = "state"
    ACCESS = "access"
    SERVER = "server"


class Actor(StrEnum):
    """Who has to do something about it."""

    CALLER = "caller"
    PROJECT = "project"
    ADMINISTRATOR = "administrator"
    OPERATOR = "operator"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class About:
    """What the manual says of a reason."""

    group: Group
    meaning: str
    actor: Actor
    retry: bool = False


class Reason(StrEnum):
    """The code on the wire; `about` tells the rest."""

    INVALID_REFERENCE = "invalid_reference"
    IMAGE_UNKNOWN = "image_unknown"
    CHANNEL_UNKNOWN = "channel_unknown"
    RELEASE_UNKNOWN = "release_unknown"
    SCOPE_UNKNOWN = "scope_unknown"
    SECRET_UNKNOWN = "secret_unknown"  # noqa: S105 - a code
    SCOPE_REQUIRED = "scope_required"
    TEMPLATE_UNKNOWN = "template_unknown"
    PROVIDER_UNKNOWN = "provider_unknown"

    IMAGE_NOT_ALLOWED = "image_not_allowed"
    IMAGE_NOT_GRANTED = "image_not_granted"
    IMAGE_ENFORCED = "image_enforced"
    OVERRIDE_DENIED = "override_denied"

    IMAGE_RETIRED = "image_retired"
    RELEASE_RETIRED = "release_retired"
    RELEASE_PENDING = "release_pending"
    RELEASE_REJECTED = "release_rejected"
    NO_DEFAULT_IMAGE = "no_default_image"
    IMAGE_UNSUPPORTED = "image_unsupported"
    REQUIREMENTS_UNMET = "requirements_unmet"
    RELEASE_INCOMPLETE = "release_incomplete"
    NOT_ONE_DISTRIBUTION = "not_one_distribution"

    IMAGE_NOT_READY = "image_not_ready"
    NO_CAPACITY = "no_capacity"
    NO_NODE_ONLINE = "no_node_online"
    POOL_PAUSED = "pool_paused"
    SNAPSHOT_NODE_OFFLINE = "snapshot_node_offline"
    IMAGE_LOST = "image_lost"
    WAIT_EXPIRED = "wait_expired"
    IMAGE_PREPARE_FAILED = "image_prepare_failed"

    IMAGE_MISMATCH = "image_mismatch"
    IMAGE_ABSENT_ON_NODE = "image_absent_on_node"
    START_FAILED = "start_failed"
    SETUP_FAILED = "setup_failed"
    NODE_LOST = "node_lost"
    TIMED_OUT = "timed_out"

    USER_NOT_FOUND = "user_not_found"
    NO_COMMAND = "no_command"
    NO_SHELL = "no_shell"
    INVALID_WORKDIR = "invalid_workdir"
    NETWORK_UNSUPPORTED = "network_unsupported"
    RESOURCE_UNSUPPORTED = "resource_unsupported"
    ABILITY_UNSUPPORTED = "ability_unsupported"
    PATH_NOT_FOUND = "path_not_found"
    PATH_INVALID = "path_invalid"
    CONTRACT_VIOLATED = "contract_violated"
    BUILD_FAILED = "build_failed"

    DIGEST_MISMATCH = "digest_mismatch"
    SIZE_MISMATCH = "size_mismatch"
    DIFF_ID_MISMATCH = "diff_id_mismatch"
    MALFORMED_LAYER = "malformed_layer"
    MALFORMED_MANIFEST = "malformed_manifest"
    MALFORMED_CONFIG = "malformed_config"
    MALFORMED_LAYOUT = "malformed_layout"
    MALFORMED_ARCHIVE = "malformed_archive"
    AMBIGUOUS_ARCHIVE = "ambiguous_archive"
    BLOB_MISSING = "blob_missing"
    NOT_AN_IMAGE = "not_an_image"
    PLATFORM_MISMATCH = "platform_mismatch"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    INVALID_DIGEST = "invalid_digest"
    UNSUPPORTED_DIGEST = "unsupported_digest"
    UNSAFE_LAYER_PATH = "unsafe_layer_path"
    UNSAFE_LINK = "unsafe_link"
    UNSAFE_WHITEOUT = "unsafe_whiteout"
    UNSAFE_DEVICE = "unsafe_device"
    LIMIT_EXCEEDED = "limit_exceeded"
    CONTENT_LOST = "content_lost"

    REGISTRY_UNREACHABLE = "registry_unreachable"
    UNAUTHORIZED_OR_MISSING = "unauthorized_or_missing"
    SOURCE_FORBIDDEN = "source_forbidden"
    REPOSITORY_MISSING = "repository_missing"
    MANIFEST_MISSING = "manifest_missing"
    RATE_LIMITED = "rate_limited"
    STALLED = "stalled"

    NO_SPACE = "no_space"

    GENERATION_STALE = "generation_stale"
    REVISION_STALE = "revision_stale"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    IN_USE = "in_use"
    NAME_TAKEN = "name_taken"
    NOT_RUNNING = "not_running"
    NOT_SUSPENDED = "not_suspended"
    ALREADY_ENDED = "already_ended"
    LIMIT_REACHED = "limit_reached"
    CANCELLED = "cancelled"

    INVALID_API_KEY = "invalid_api_key"
    FORBIDDEN = "forbidden"
    TOO_MANY_REQUESTS = "too_many_requests"

    NOT_FOUND = "not_found"
    INVALID_BODY = "invalid_body"
    HOST_UNFIT = "host_unfit"
    DATABASE_UNAVAILABLE = "database_unavailable"
    INTERNAL = "internal"

    @property
    def about(self) -> About:
        """Group, meaning, who acts, whether trying again can help."""
        return _ABOUT[self]


_C, _P, _A, _O, _N = Actor.CALLER, Actor.PROJECT, Actor.ADMINISTRATOR, Actor.OPERATOR, Actor.NOBODY
_G = Group

_ABOUT: dict[Reason, About] = {
    Reason.INVALID_REFERENCE: About(_G.REFERENCE, "The text is no image reference.", _C),
    Reason.IMAGE_UNKNOWN: About(_G.REFERENCE, "No image has this name or id.", _C),
    Reason.CHANNEL_UNKNOWN: About(_G.REFERENCE, "The image has no such channel.", _C),
    Reason.RELEASE_UNKNOWN: About(_G.REFERENCE, "The image has no such release.", _C),
    Reason.SECRET_UNKNOWN: About(_G.REFERENCE, "The project has no secret of this name.", _C),
    Reason.SCOPE_UNKNOWN: About(_G.REFERENCE, "No scope of this name is registered, or not for this project.", _C),
    Reason.SCOPE_REQUIRED: About(_G.REFERENCE, "Each Session of this project has to name its scope.", _C),
    Reason.TEMPLATE_UNKNOWN: About(_G.REFERENCE, "The project has no such Template.", _C),
    Reason.PROVIDER_UNKNOWN: About(_G.REFERENCE, "No provider of this kind is installed.", _A),
    Reason.IMAGE_NOT_ALLOWED: About(_G.CHOOSING, "An allow-list on the path does not hold the image.", _A),
    Reason.IMAGE_NOT_GRANTED: About(_G.CHOOSING, "The image is restricted and nobody on the path has a grant.", _A),
    Reason.IMAGE_ENFORCED: About(_G.CHOOSING, "Another image or release is enforced on the path.", _C),
    Reason.OVERRIDE_DENIED: About(_G.CHOOSING, "On this path a Session may not name an image.", _C),
    Reason.IMAGE_RETIRED: About(_G.CHOOSING, "The image takes no new Sessions.", _C),
    Reason.RELEASE_RETIRED: About(_G.CHOOSING, "The release takes no new Sessions.", _C),
    Reason.RELEASE_PENDING: About(_G.CHOOSING, "No node has proved the release yet.", _N, retry=True),
    Reason.RELEASE_REJECTED: About(_G.CHOOSING, "The release's verified bytes are at fault.", _A),
    Reason.NO_DEFAULT_IMAGE: About(_G.CHOOSING, "Nothing names an image and the deployment has no default.", _A),
    Reason.IMAGE_UNSUPPORTED: About(_G.CHOOSING, "No pool of the deployment can run it.", _A),
    Reason.REQUIREMENTS_UNMET: About(_G.CHOOSING, "The release's verified tools are not what is required.", _C),
    Reason.RELEASE_INCOMPLETE: About(_G.CHOOSING, "An artifact that the provider needs is missing.", _A),
    Reason.NOT_ONE_DISTRIBUTION: About(_G.CHOOSING, "Two say different things of one artifact.", _A),
    Reason.IMAGE_NOT_READY: About(_G.PLACEMENT, "No node holds the release yet.", _N, retry=True),
    Reason.NO_CAPACITY: About(_G.PLACEMENT, "Nodes hold the release, all of them are full.", _N, retry=True),
    Reason.NO_NODE_ONLINE: About(_G.PLACEMENT, "No node that could run it is online.", _O, retry=True),
    Reason.POOL_PAUSED: About(_G.PLACEMENT, "The pools that could run it are paused.", _A, retry=True),
    Reason.SNAPSHOT_NODE_OFFLINE: About(
        _G.PLACEMENT, "The node that keeps the suspended state is not online.", _O, retry=True
    ),
    Reason.IMAGE_LOST: About(_G.PLACEMENT, "The frozen release's bytes are gone everywhere.", _A),
    Reason.WAIT_EXPIRED: About(_G.PLACEMENT, "The time to wait is over.", _N, retry=True),
    Reason.IMAGE_PREPARE_FAILED: About(_G.PLACEMENT, "Every node that could run it failed to prepare it.", _O),
    Reason.IMAGE_MISMATCH: About(_G.START, "What booted is not what was frozen; it was destroyed.", _O),
    Reason.IMAGE_ABSENT_ON_NODE: About(_G.START, "The node does not hold the release.", _O, retry=True),
    Reason.START_FAILED: About(_G.START, "The sandbox did not start.", _O),
    Reason.SETUP_FAILED: About(_G.START, "A step of the Session's setup failed or took too long.", _C),
    Reason.NODE_LOST: About(_G.START, "The node no longer has the sandbox.", _O),
    Reason.TIMED_OUT: About(_G.START, "It took longer than its limit.", _C),
    Reason.USER_NOT_FOUND: About(_G.REQUEST, "The image's files do not know this user.", _C),
    Reason.NO_COMMAND: About(_G.REQUEST, "Neither the request nor the image says what to run.", _C),
    Reason.NO_SHELL: About(_G.REQUEST, "A shell line was asked for and the image has no /bin/sh.", _C),
    Reason.INVALID_WORKDIR: About(_G.REQUEST, "The working directory cannot be used.", _C),
    Reason.NETWORK_UNSUPPORTED: About(_G.REQUEST, "The provider cannot enforce this network mode.", _C),
    Reason.RESOURCE_UNSUPPORTED: About(_G.REQUEST, "No pool is that large, or the limit cannot be enforced.", _C),
    Reason.ABILITY_UNSUPPORTED: About(_G.REQUEST, "The provider does not have this ability.", _C),
    Reason.PATH_NOT_FOUND: About(_G.REQUEST, "There is nothing at this path.", _C),
    Reason.PATH_INVALID: About(_G.REQUEST, "The path cannot be used for this.", _C),
    Reason.CONTRACT_VIOLATED: About(_G.REQUEST, "A tool that the image promises fails or is missing.", _A),
    Reason.BUILD_FAILED: About(_G.REQUEST, "A step of the build failed, or exceeded what a build may use.", _C),
    Reason.DIGEST_MISMATCH: About(_G.CONTENT, "The bytes do not have the digest they were asked for by.", _A),
    Reason.SIZE_MISMATCH: About(_G.CONTENT, "There are more or fewer bytes than the descriptor says.", _A),
    Reason.DIFF_ID_MISMATCH: About(_G.CONTENT, "The unpacked layer is not the one the config lists.", _A),
    Reason.MALFORMED_LAYER: About(_G.CONTENT, "The layer is no whole, well-formed tar.", _A),
    Reason.MALFORMED_MANIFEST: About(_G.CONTENT, "The manifest or index is not well-formed.", _A),
    Reason.MALFORMED_CONFIG: About(_G.CONTENT, "The image's config is not well-formed.", _A),
    Reason.MALFORMED_LAYOUT: About(_G.CONTENT, "The folder is no OCI layout that we know.", _A),
    Reason.MALFORMED_ARCHIVE: About(_G.CONTENT, "The archive is not well-formed.", _A),
    Reason.AMBIGUOUS_ARCHIVE: About(_G.CONTENT, "There are several images; say which.", _A),
    Reason.BLOB_MISSING: About(_G.CONTENT, "A blob that the manifest names is not there.", _A),
    Reason.NOT_AN_IMAGE: About(_G.CONTENT, "It is an artifact of another kind, or no sandbox can be made of it.", _A),
    Reason.PLATFORM_MISMATCH: About(_G.CONTENT, "None of its platforms is wanted here.", _A),
    Reason.UNSUPPORTED_MEDIA_TYPE: About(_G.CONTENT, "A document or layer is of a type we do not read.", _A),
    Reason.INVALID_DIGEST: About(_G.CONTENT, "The text is no digest.", _A),
    Reason.UNSUPPORTED_DIGEST: About(_G.CONTENT, "The digest's algorithm is not one we check.", _A),
    Reason.UNSAFE_LAYER_PATH: About(_G.CONTENT, "A layer entry's name leads out of the image.", _A),
    Reason.UNSAFE_LINK: About(_G.CONTENT, "A hard link leads out of the image or to a folder.", _A),
    Reason.UNSAFE_WHITEOUT: About(_G.CONTENT, "A whiteout names no single ordinary entry.", _A),
    Reason.UNSAFE_DEVICE: About(_G.CONTENT, "A device node would steer the overlay mount.", _A),
    Reason.LIMIT_EXCEEDED: About(_G.CONTENT, "It is larger than a limit of this installation.", _A),
    Reason.CONTENT_LOST: About(_G.CONTENT, "Bytes that the node held are damaged or gone.", _N, retry=True),
    Reason.REGISTRY_UNREACHABLE: About(_G.TRANSFER, "The registry cannot be talked to.", _O, retry=True),
    Reason.UNAUTHORIZED_OR_MISSING: About(
        _G.TRANSFER, "The registry wants other credentials, or there is no such repository.", _A, retry=True
    ),
    Reason.SOURCE_FORBIDDEN: About(_G.TRANSFER, "The registry does not allow it.", _A, retry=True),
    Reason.REPOSITORY_MISSING: About(_G.TRANSFER, "The registry has no such repository.", _A, retry=True),
    Reason.MANIFEST_MISSING: About(_G.TRANSFER, "The repository has no such tag or digest.", _A, retry=True),
    Reason.RATE_LIMITED: About(_G.TRANSFER, "The registry wants fewer requests.", _N, retry=True),
    Reason.STALLED: About(_G.TRANSFER, "The registry stopped sending.", _N, retry=True),
    Reason.NO_SPACE: About(_G.ROOM, "The disk is full.", _O, retry=True),
    Reason.GENERATION_STALE: About(_G.STATE, "The deployment has changed since it was read.", _C),
    Reason.REVISION_STALE: About(_G.STATE, "It has changed since it was read.", _C),
    Reason.IDEMPOTENCY_CONFLICT: About(_G.STATE, "This key was used with another body.", _C),
    Reason.IN_USE: About(_G.STATE, "Something still needs it.", _C),
    Reason.NAME_TAKEN: About(_G.STATE, "The name is or was used.", _C),
    Reason.NOT_RUNNING: About(_G.STATE, "The Session is not running.", _C),
    Reason.NOT_SUSPENDED: About(_G.STATE, "The Session is not suspended.", _C),
    Reason.ALREADY_ENDED: About(_G.STATE, "The Session has ended.", _C),
    Reason.LIMIT_REACHED: About(_G.STATE, "A limit of this installation is reached.", _A),
    Reason.CANCELLED: About(_G.STATE, "Somebody told it to end before it was done.", _C),
    Reason.INVALID_API_KEY: About(_G.ACCESS, "The key is unknown or revoked.", _C),
    Reason.FORBIDDEN: About(_G.ACCESS, "This key may not do that.", _C),
    Reason.TOO_MANY_REQUESTS: About(_G.ACCESS, "It is asked more often than the installation allows.", _C, retry=True),
    Reason.NOT_FOUND: About(_G.REFERENCE, "There is no such thing here.", _C),
    Reason.INVALID_BODY: About(_G.REQUEST, "The request is not of the form it must have.", _C),
    Reason.HOST_UNFIT: About(_G.SERVER, "The host lacks something that sandboxes need.", _O),
    Reason.DATABASE_UNAVAILABLE: About(_G.SERVER, "The database cannot be reached now.", _O, retry=True),
    Reason.INTERNAL: About(_G.SERVER, "A fault of ours.", _O),
}
