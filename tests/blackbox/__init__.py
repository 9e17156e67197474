"""Black-box tests: the gateway as any user of pyarrow meets it."""

import os

# The long forms, by `make test-long`.
LONG = bool(os.environ.get("SHEAF_SOAK"))
