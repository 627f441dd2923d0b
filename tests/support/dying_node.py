"""`sandbay …` that dies before a step below the node's store. Arguments: STEP NUMBER …; see `killing.die_at`."""

import os
import sys
from pathlib import Path

from sandbay.entrypoints.main import main
from tests.support.killing import die_at

if __name__ == "__main__":
    step, number, *arguments = sys.argv[1:]
    die_at(step, int(number), Path(os.environ["SANDBAY_HOME"], "nodes", "oci", "store"))
    sys.argv[1:] = arguments
    main()
