"""Whether a test has failed, for fixtures that say then what their processes said."""

import pytest

# In the stash of the test.
HAS_FAILED = pytest.StashKey[bool]()
