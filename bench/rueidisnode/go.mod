// The path lets this module use what is internal to redisstore.
module github.com/leasehold-dev/leasehold/store/redisstore/rueidisnode

go 1.26.0

require (
	github.com/leasehold-dev/leasehold v0.0.0
	github.com/redis/rueidis v1.0.79
)

require golang.org/x/sys v0.47.0 // indirect
