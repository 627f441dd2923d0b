"""The contract of `sandbay.ports.provider`, executable: what every adapter has to pass, and the in-memory one too.

    class TestMine(ProviderSuite):
        @pytest.fixture
        def harness(self) -> Iterator[ProviderHarness]: ...

A harness (`tests.contracts.provider_harness`) gives a provider with fresh state, four small images, and says what it
offers beyond the port. What needs an offer that is missing, or a limit that this machine cannot enforce, is skipped
by name; everything else runs.
"""

from tests.contracts.provider_allocations import AllocationsSuite
from tests.contracts.provider_confinement import ConfinementSuite
from tests.contracts.provider_exec import ExecSuite
from tests.contracts.provider_files import FilesSuite
from tests.contracts.provider_images import ImagesSuite


class ProviderSuite(ImagesSuite, AllocationsSuite, ExecSuite, FilesSuite, ConfinementSuite):
    """All of it."""
