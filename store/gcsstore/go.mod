module github.com/leasehold-dev/leasehold/store/gcsstore

go 1.26.0

require (
	github.com/leasehold-dev/leasehold v0.0.0
	golang.org/x/oauth2 v0.36.0
)

require cloud.google.com/go/compute/metadata v0.3.0 // indirect
