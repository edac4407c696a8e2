package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/s3store"
)

var s3Scheme = scheme{
	names: []string{"s3"},
	usage: "s3://BUCKET/PREFIX?region=REGION",
	help: `A bucket of S3, for jobs and elections: waiters look once a second, and each look costs
money. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared
configuration (profile=NAME) or the machine. For another server say
endpoint=https://HOST:PORT, and durable=true if its writes outlive a crash. With
skew=1m, a job that tries once can get the lock of a dead holder.`,
	single: true,
}

func examineS3(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	bucket, options, err := s3store.ParseURL(url)
	if err != nil {
		return nil, err
	}
	e, err := s3store.Examine(ctx, bucket, options)
	if err != nil {
		return nil, err
	}
	return doctor.S3(e, o.ttl), nil
}
