package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
)

var azureScheme = scheme{
	names: []string{"azblob"},
	usage: "azblob://CONTAINER/PREFIX?account=ACCOUNT",
	help: `A container of Azure Blob Storage, for jobs and elections: waiters look once a second,
and each look costs money. Credentials are AZURE_STORAGE_KEY, or a login to Entra ID:
that of an application, of az, or of the machine. With skew=1m, a job that tries once
can get the lock of a dead holder.`,
	single: true,
}

func examineAzure(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	container, options, err := azblobstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	e, err := azblobstore.Examine(ctx, container, options)
	if err != nil {
		return nil, err
	}
	return doctor.Azure(e, o.ttl), nil
}
