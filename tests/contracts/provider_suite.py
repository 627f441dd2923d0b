"""The contract of `sandbay.ports.provider`, executable: what every adapter has to pass, and the in-memory one too.

    class TestMine(ProviderSuite):
        @pytest.fixture
        def harness(self) -> Iterator[ProviderHarness]: ...

A harness (`tests.contracts.provider_harness`) gives a provider with its state, four small images, and says what it
offers beyond the port. What needs an offer that is missing, or a limit that this machine cannot enforce, is skipped
by name; everything else runs.

Where state is dear to make, run the halves apart: `StateSuite` needs fresh state for each test, `SandboxSuite` only
that no allocation is left of the test before.
"""

from tests.contracts.provider_allocations import AllocationsSuite
from tests.contracts.provider_confinement import ConfinementSuite
from tests.contracts.provider_exec import ExecSuite
from tests.contracts.provider_files import FilesSuite
from tests.contracts.provider_images import ImagesSuite
from tests.contracts.provider_network import NetworkSuite
from tests.contracts.provider_snapshots import SnapshotsSuite
from tests.contracts.provider_terminal import TerminalSuite


class StateSuite(ImagesSuite, AllocationsSuite, SnapshotsSuite, NetworkSuite):
    """What a provider holds and runs, and what becomes of it."""


class SandboxSuite(ExecSuite, TerminalSuite, FilesSuite, ConfinementSuite):
    """What a running sandbox does and cannot do."""


class ProviderSuite(StateSuite, SandboxSuite):
    """All of it."""
