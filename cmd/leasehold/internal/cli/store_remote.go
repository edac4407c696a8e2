package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/remotestore"
)

var remoteScheme = scheme{
	names: []string{"https", "http"},
	usage: "https://HOST:PORT,HOST:PORT/PREFIX?token_file=FILE",
	help: `One or several servers ("leasehold serve") in front of one store, whatever that is. The
token can also be in LEASEHOLD_TOKEN. ca=FILE, cert=FILE and key=FILE say which servers
to trust and log in. http:// is for this machine only.`,
	single: true,
}

func examineRemote(ctx context.Context, url string, _ doctorFlags) ([]doctor.Finding, error) {
	st, err := remotestore.Open(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	return doctor.Remote(st.Caps()), nil
}
