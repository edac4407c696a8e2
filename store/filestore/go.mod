module github.com/leasehold-dev/leasehold/store/filestore

go 1.26.0

require (
	github.com/leasehold-dev/leasehold v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.49.0
)
