package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/natsstore"
)

var natsScheme = scheme{
	names: []string{"nats"},
	usage: "nats://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/BUCKET?sync=always",
	help: `NATS JetStream, for locks between machines. BUCKET names the stream, and is "default"
unless you give another. Say sync=always if every server has sync_interval: always;
otherwise a server that loses power may forget locks. tls=true, ca=FILE, cert=FILE,
key=FILE and creds=FILE log in.`,
	single: true,
}

func examineNATS(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	servers, options, err := natsstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	e, err := natsstore.Examine(ctx, servers, options)
	if err != nil {
		return nil, err
	}
	return doctor.NATS(e, o.ttl), nil
}
