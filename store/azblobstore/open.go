package azblobstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Options configure a store. The zero value and nil are good defaults if the environment names the
// account. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// Account is the name of the storage account. Empty means that of AZURE_STORAGE_ACCOUNT.
	Account string
	// Prefix is what the names of all blobs begin with, followed by a slash. Empty means
	// "leasehold".
	Prefix string
	// Endpoint is the URL of another server, such as an emulator, with the account if it is part
	// of the path. Empty means Azure.
	Endpoint string
	// Skew lets clients use the dates of the server, and is how far its clock may jump. A client
	// that finds the lock of a dead holder then waits for the rest of its TTL and Skew at
	// most, and not for a whole TTL. Zero means that no date is used.
	Skew time.Duration
	// Poll is how often a waiter looks at first. Zero means once a second. A waiter that waits
	// long looks less and less often, up to 16 times Poll.
	Poll time.Duration
	// Timeout bounds each step. A request is made again after a quarter of it. Zero means 10 s.
	Timeout time.Duration
	// Key is the key of the account. Empty means that of AZURE_STORAGE_KEY, and if that is empty,
	// too, Credential is used.
	Key string
	// Credential gets tokens of Microsoft Entra ID. Nil means those of the environment, the
	// machine or its user, as azidentity.DefaultAzureCredential finds them.
	Credential azcore.TokenCredential
	// Logger is told of trouble that no caller learns of. Nil means none.
	Logger *slog.Logger

	container string // from the URL
}

var (
	containerForm = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)
	accountForm   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
)

func (o *Options) complete() error {
	o.Account = cmp.Or(o.Account, os.Getenv("AZURE_STORAGE_ACCOUNT"))
	switch {
	case !containerForm.MatchString(o.container) || len(o.container) < 3 || len(o.container) > 63:
		return fmt.Errorf("%w: %q is no name of a container", store.ErrInvalid, store.Excerpt(o.container))
	case !accountForm.MatchString(o.Account):
		return fmt.Errorf("%w: %q is no name of a storage account: give it in the URL (account=ACCOUNT), or in AZURE_STORAGE_ACCOUNT", store.ErrInvalid, store.Excerpt(o.Account))
	}
	return nil
}

// server returns the URL below which the containers are.
func (o *Options) server() string {
	return cmp.Or(o.Endpoint, "https://"+o.Account+".blob.core.windows.net")
}

var engine = objects.Engine[Options, *driver]{
	Name: "azblob", Scheme: "azblob", Service: "Azure Blob Storage", Form: "CONTAINER/PREFIX?account=ACCOUNT", Credentials: "AZURE_STORAGE_KEY, or by a login to Entra ID", Server: "endpoint=https://HOST:PORT",
	Common: func(o *Options) objects.Common {
		return objects.Common{Bucket: &o.container, Prefix: &o.Prefix, Endpoint: &o.Endpoint, Skew: &o.Skew, Poll: &o.Poll, Timeout: &o.Timeout, Logger: &o.Logger}
	},
	Settings: []objects.Setting[Options]{
		objects.Text("account", func(o *Options) *string { return &o.Account }),
	},
	Complete: (*Options).complete,
	Connect:  connect,
}

func init() { engine.Register() }

// Open makes a client of the container that a URL names, and tries whether it can write there,
// and whether the server heeds conditions:
//
//	azblob://CONTAINER/PREFIX?account=ACCOUNT
//
// The default prefix is "leasehold", and the default account is that of AZURE_STORAGE_ACCOUNT.
// account, endpoint, skew, poll and timeout are those of Options. A nil o means the defaults.
// Open blocks for Options.Timeout at most. The error matches store.ErrInvalid if the URL or the
// options are wrong, as a URL with credentials is. The store is safe for concurrent use.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	return engine.Open(ctx, url, o)
}

// connect makes a driver. It has not asked the server for anything yet.
func connect(_ context.Context, o Options) (*driver, error) {
	t := objects.Transport()
	d := &driver{o: o, node: "azblob://" + o.container + " at " + o.server(), client: objects.Client{HTTP: &http.Client{Transport: t}, Timeout: o.Timeout / 4, Say: say, Conflict: conflict}}
	if text := cmp.Or(o.Key, os.Getenv("AZURE_STORAGE_KEY")); text != "" {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, recordstore.Refusal("the key of the account in AZURE_STORAGE_KEY is not in base64")
		}
		d.login = sharedKey{o.Account, key}
		return d, nil
	}
	if strings.HasPrefix(o.server(), "http:") {
		return nil, recordstore.Refusal("tokens of Entra ID are not sent without TLS: give the key of the account in AZURE_STORAGE_KEY, or an endpoint with https")
	}
	if o.Credential == nil {
		c, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, recordstore.Refusal("the credentials of Azure cannot be used: %w", err)
		}
		o.Credential = c
	}
	d.login = entra{o.Credential}
	return d, nil
}
