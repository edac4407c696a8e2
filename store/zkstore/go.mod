module github.com/leasehold-dev/leasehold/store/zkstore

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/leasehold-dev/leasehold v0.0.0
	go.uber.org/goleak v1.3.0
)
