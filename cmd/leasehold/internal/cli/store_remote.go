package cli

import (
	_ "github.com/leasehold-dev/leasehold/store/remotestore" // for its schemes
)

var remoteScheme = scheme{
	names: []string{"https", "http"},
	usage: "https://HOST:PORT,HOST:PORT/PREFIX?token_file=FILE",
	help: `One or several servers ("leasehold serve") in front of one store, whatever that is. The
token can also be in LEASEHOLD_TOKEN. ca=FILE, cert=FILE and key=FILE say which servers
to trust and log in. http:// is for this machine only.`,
	single: true,
}
