package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
)

var gcsScheme = scheme{
	names: []string{"gs"},
	usage: "gs://BUCKET/PREFIX",
	help: `A bucket of Google Cloud Storage, for jobs and elections: waiters look once in two
seconds, each look costs money, and a lock changes at most once a second. Credentials
are the file that GOOGLE_APPLICATION_CREDENTIALS names, the login of gcloud, or the
machine's service account. With skew=1m, a job that tries once can get the lock of a
dead holder.`,
	single: true,
}

func examineGCS(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	bucket, options, err := gcsstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	e, err := gcsstore.Examine(ctx, bucket, options)
	if err != nil {
		return nil, err
	}
	return doctor.GCS(e, o.ttl), nil
}
