package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

var etcdScheme = scheme{
	names: []string{"etcd", "etcds"},
	usage: "etcd://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/PREFIX?timeout=5s",
	help: `An etcd cluster, for locks between machines: name all its voting members. The lock
NAME is that of "etcdctl lock PREFIX/NAME"; PREFIX is leasehold unless you give
another. etcds is etcd with TLS; ca=FILE trusts the certificates in a file, and
cert=FILE&key=FILE are those of the client.`,
	single: true,
}

func examineEtcd(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	endpoints, options, err := etcdstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	e, err := etcdstore.Examine(ctx, endpoints, options)
	if err != nil {
		return nil, err
	}
	return doctor.Etcd(e, o.ttl), nil
}
