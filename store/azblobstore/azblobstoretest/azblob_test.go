package azblobstoretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

var kind = objectstest.Kind{
	Start: start,
	Open: func(ctx context.Context, endpoint string, o objectstest.Options) (*store.Store, error) {
		return azblobstore.Open(ctx, "azblob://"+container, &azblobstore.Options{Account: account, Key: key, Endpoint: endpoint + "/" + account, Prefix: o.Prefix, Skew: o.Skew, Poll: o.Poll, Timeout: o.Timeout})
	},
	Examine: func(ctx context.Context, endpoint string, timeout time.Duration) (objectstest.Examination, error) {
		e, err := azblobstore.Examine(ctx, "azblob://"+container, &azblobstore.Options{Account: account, Key: key, Endpoint: endpoint + "/" + account, Timeout: timeout})
		return objectstest.Examination{Node: e.Node, Class: e.Class, Unusable: e.Unusable}, err
	},
	ByHand: byHand,
	URL: func(endpoint string) string {
		return "azblob://" + container + "/torture?account=" + account + "&endpoint=" + endpoint + "/" + account
	},
	Env:    []string{"AZURE_STORAGE_KEY=" + key},
	Method: http.MethodPut,
	Fail: func(w http.ResponseWriter, f objectstest.Failure) {
		w.Header().Set("x-ms-error-code", f.Code)
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, mark+"<Error><Code>%s</Code><Message>as the test asked for</Message></Error>", f.Code)
	},
	Passing: []objectstest.Failure{{Status: 500, Code: "InternalError"}},
	Slow:    []objectstest.Failure{{Status: 503, Code: "InternalError"}, {Status: 429, Code: "ServerBusy"}},
	Final:   []objectstest.Failure{{Status: 403, Code: "AuthorizationPermissionMismatch"}, {Status: 401, Code: "InvalidAuthenticationInfo"}, {Status: 404, Code: "ContainerNotFound"}, {Status: 412, Code: "LeaseIdMissing"}},
	Ignore: map[string]func(http.ResponseWriter, *http.Request) bool{"does not heed": func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
		sign(r)
		return false
	}},
	Page: func(r *http.Request, n int) {
		if q := r.URL.Query(); q.Get("comp") == "list" {
			q.Set("maxresults", fmt.Sprint(n))
			r.URL.RawQuery = q.Encode()
			sign(r)
		}
	},
	Behind: func(w http.ResponseWriter, r *http.Request) bool {
		listed := r.URL.Query().Get("comp") == "list"
		if listed {
			fmt.Fprint(w, mark+"<EnumerationResults><Blobs></Blobs></EnumerationResults>")
		}
		return listed
	},
}

// mark is what answers of Azure begin with.
const mark = "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?>"

func TestConformsOnObjects(t *testing.T)            { kind.Conforms(t) }
func TestRequests(t *testing.T)                     { kind.Requests(t) }
func TestIgnoredConditionsAreRefused(t *testing.T)  { kind.IgnoredConditionsAreRefused(t) }
func TestFaultsOnObjects(t *testing.T)              { kind.Faults(t) }
func TestServerErrors(t *testing.T)                 { kind.ServerErrors(t) }
func TestRefusalsAreFinal(t *testing.T)             { kind.RefusalsAreFinal(t) }
func TestSlowDown(t *testing.T)                     { kind.SlowDown(t) }
func TestDeletedObjects(t *testing.T)               { kind.DeletedObjects(t) }
func TestDeadHolder(t *testing.T)                   { kind.DeadHolder(t) }
func TestDeadHolderIsSeenByNewClients(t *testing.T) { kind.DeadHolderIsSeenByNewClients(t) }
func TestLists(t *testing.T)                        { kind.Lists(t) }
func TestListsThatAreBehind(t *testing.T)           { kind.ListsThatAreBehind(t) }
func TestExamine(t *testing.T)                      { kind.Examined(t) }
func TestContest(t *testing.T)                      { kind.Contest(t) }
func TestConformsUnderFaultsOnObjects(t *testing.T) { t.Parallel(); kind.ConformsUnderFaults(t) }
func TestIdleCost(t *testing.T)                     { kind.IdleCost(t) }
func TestTortureOnObjects(t *testing.T)             { kind.Torture(t) }
func BenchmarkLock(b *testing.B)                    { kind.BenchmarkLock(b) }
func BenchmarkOneLock(b *testing.B)                 { kind.BenchmarkOneLock(b) }
func BenchmarkHandOff(b *testing.B)                 { kind.BenchmarkHandOff(b) }

func TestTLS(t *testing.T) {
	kind.TLS(t, func(*objectstest.Server) []string { return nil })
}

// token is a credential that counts how often it was asked.
type token struct{ asked int }

func (c *token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.asked++
	return azcore.AccessToken{Token: "hush", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// Credentials are sent to nobody whose certificate is not trusted, tokens without TLS to nobody, and
// none is in an error. A wrong key is refused.
func TestCredentials(t *testing.T) {
	srv := start(t, false)
	url := srv.URL + "/" + account
	t.Setenv("AZURE_STORAGE_KEY", "")
	var sent []string
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		kind.Fail(w, kind.Final[0])
	}))
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	refused := func(what string, o azblobstore.Options, says string) {
		t.Helper()
		o.Account, o.Timeout = account, 2*time.Second
		s, err := azblobstore.Open(t.Context(), "azblob://"+container, &o)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want a refusal that says %q", what, err, says)
		}
	}
	asked := &token{}
	refused("a token without TLS", azblobstore.Options{Credential: asked, Endpoint: url}, "TLS")
	refused("a certificate that nobody trusts", azblobstore.Options{Credential: asked, Endpoint: front.URL}, "certificate")
	if len(sent) > 0 {
		t.Errorf("sent %q to a server that nobody trusts", sent)
	}
	refused("a key that is none", azblobstore.Options{Key: "hush", Endpoint: url + "/"}, "")
	refused("another key", azblobstore.Options{Key: "aHVzaA==", Endpoint: url}, "403")
	t.Setenv("AZURE_STORAGE_KEY", key)
	if s, err := azblobstore.Open(t.Context(), "azblob://other", &azblobstore.Options{Account: account, Endpoint: url}); !errors.Is(err, recordstore.ErrRefused) {
		t.Errorf("a container that there is not: %v, %v, want a refusal", s, err)
	}
	s, err := store.Open(t.Context(), "azblob://"+container+"?account="+account+"&endpoint="+url, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
