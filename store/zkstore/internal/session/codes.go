package session

// Codes of requests in ZooKeeper's protocol.
const (
	opCreate          = 1
	opDelete          = 2
	opGetData         = 4
	opSetData         = 5
	opSync            = 9
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opAuth            = 100
	opSetWatches      = 101
	opClose           = -11
)
