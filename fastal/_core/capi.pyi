# A capsule with the address of a `fastal_api` of fastal.h.
API: object
ABI_VERSION: int
