"""Has a worker pack a parcel, and prints what is on it."""

from tasks import pack

print(pack.delay(2, "tea").get(timeout=60))
