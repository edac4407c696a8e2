package gcsstoretest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

var kind = objectstest.Kind{
	Start: start,
	Open: func(ctx context.Context, endpoint string, o objectstest.Options) (*store.Store, error) {
		return gcsstore.Open(ctx, "gs://"+bucket, &gcsstore.Options{Endpoint: endpoint, Prefix: o.Prefix, Skew: o.Skew, Poll: o.Poll, Timeout: o.Timeout})
	},
	Examine: func(ctx context.Context, endpoint string, timeout time.Duration) (objectstest.Examination, error) {
		e, err := gcsstore.Examine(ctx, "gs://"+bucket, &gcsstore.Options{Endpoint: endpoint, Timeout: timeout})
		return objectstest.Examination{Node: e.Node, Class: e.Class, Unusable: e.Unusable}, err
	},
	ByHand: byHand,
	URL:    func(endpoint string) string { return "gs://" + bucket + "/torture?endpoint=" + endpoint },
	Method: http.MethodPost,
	Fail: func(w http.ResponseWriter, f objectstest.Failure) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, `{"error": {"code": %d, "message": "as the test asked for", "errors": [{"reason": %q}]}}`, f.Status, f.Code)
	},
	Passing: []objectstest.Failure{{Status: 500, Code: "backendError"}},
	// 429: the object was replaced less than a second ago.
	Slow:  []objectstest.Failure{{Status: 503, Code: "backendError"}, {Status: 429, Code: "rateLimitExceeded"}},
	Final: []objectstest.Failure{{Status: 403, Code: "forbidden"}, {Status: 401, Code: "authError"}, {Status: 400, Code: "invalid"}},
	Ignore: map[string]func(http.ResponseWriter, *http.Request) bool{"does not heed": func(_ http.ResponseWriter, r *http.Request) bool {
		set(r, "ifGenerationMatch", "")
		return false
	}},
	Page: func(r *http.Request, n int) {
		if r.URL.Query().Has("prefix") {
			set(r, "maxResults", fmt.Sprint(n))
		}
	},
	Behind: func(w http.ResponseWriter, r *http.Request) bool {
		listed := r.URL.Query().Has("prefix")
		if listed {
			fmt.Fprint(w, "{}")
		}
		return listed
	},
}

// set changes a parameter of a request, or removes it.
func set(r *http.Request, name, value string) {
	q := r.URL.Query()
	if q.Del(name); value != "" {
		q.Set(name, value)
	}
	r.URL.RawQuery = q.Encode()
}

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
func TestIdleCost(t *testing.T)                     { t.Parallel(); kind.IdleCost(t) }
func TestTortureOnObjects(t *testing.T)             { kind.Torture(t) }
func BenchmarkLock(b *testing.B)                    { kind.BenchmarkLock(b) }
func BenchmarkOneLock(b *testing.B)                 { kind.BenchmarkOneLock(b) }
func BenchmarkHandOff(b *testing.B)                 { kind.BenchmarkHandOff(b) }

// Credentials come from the file that the environment names, and are sent over TLS.
func TestTLS(t *testing.T) {
	kind.TLS(t, func(srv *objectstest.Server) []string {
		srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/token":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"access_token": "hush", "token_type": "Bearer", "expires_in": 3600}`)
			case r.Header.Get("Authorization") != "Bearer hush":
				kind.Fail(w, kind.Final[0])
			default:
				return false
			}
			return true
		})
		file := t.TempDir() + "/login.json"
		login := fmt.Sprintf(`{"type": "authorized_user", "client_id": "app", "client_secret": "hush", "refresh_token": "hush", "token_uri": "%s/token"}`, srv.URL)
		if err := os.WriteFile(file, []byte(login), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"GOOGLE_APPLICATION_CREDENTIALS=" + file}
	})
}

// A server with TLS is refused if there are no credentials, and none are sent to one without.
func TestCredentials(t *testing.T) {
	srv := start(t, false)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if sent := r.Header.Get("Authorization"); sent != "" {
			t.Errorf("sent %q without TLS", sent)
		}
		return false
	})
	for url, says := range map[string]string{
		"gs://" + bucket + "?endpoint=https://127.0.0.1:1": "GOOGLE_APPLICATION_CREDENTIALS",
		"gs://other?endpoint=" + srv.URL:                   "404",
		"gs://" + bucket + "?endpoint=" + srv.URL:          "",
	} {
		s, err := store.Open(t.Context(), url, nil)
		if err == nil {
			s.Close()
		}
		if says == "" && err != nil || says != "" && (!errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want a refusal that says %q, if anything", url, err, says)
		}
	}
}
