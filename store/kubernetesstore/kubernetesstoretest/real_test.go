package kubernetesstoretest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/torturetest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// The Role that is printed is enough for what it is for, and nothing works without it.
func TestRights(t *testing.T) {
	need(t)
	s := own(t)
	s.namespace = "rights"
	s.makeNamespace(t, s.namespace)
	as := func(account string) kubernetesstore.Options {
		return kubernetesstore.Options{Config: &rest.Config{Host: s.Door.URL, BearerToken: "system:serviceaccount:rights:" + account}}
	}
	for account, use := range map[string]kubernetesstore.Use{"locker": kubernetesstore.ToLock, "viewer": kubernetesstore.ToShow} {
		text, err := kubernetesstore.Rights("kubernetes://"+s.namespace, account, use)
		if err != nil {
			t.Fatal(err)
		}
		for path, manifest := range map[string]string{"roles": strings.Split(text, "---\n")[0], "rolebindings": strings.Split(text, "---\n")[1]} {
			j, err := yaml.YAMLToJSON([]byte(manifest))
			if err != nil {
				t.Fatal(err)
			}
			if status, answer := s.call(http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/rights/"+path, json.RawMessage(j)); status != http.StatusCreated {
				t.Fatalf("%s: %d %s", path, status, answer)
			}
		}
	}
	eventually.True(t, "the rights count", func() bool {
		e, err := kubernetesstore.Examine(t.Context(), "kubernetes://"+s.namespace, &kubernetesstore.Options{Config: as("locker").Config, Timeout: 2 * time.Second})
		return err == nil && e.Unusable == nil && len(e.Missing) == 0
	})
	app := open(t, s, as("locker"))
	c := leasehold.New(app, nil)
	if err := c.Mutex("a").Do(t.Context(), func(ctx context.Context, _ *leasehold.Lease) error {
		waits := make(chan error, 1)
		go func() {
			next, err := leasehold.New(open(t, s, as("locker")), nil).Mutex("a").Acquire(context.WithoutCancel(ctx))
			if err == nil {
				err = next.Release(t.Context())
			}
			waits <- err
		}()
		t.Cleanup(func() {
			if err := <-waits; err != nil {
				t.Errorf("a waiter with the least rights: %v", err)
			}
		})
		viewer := open(t, s, as("viewer"))
		if st, err := viewer.Inspect(ctx, "a"); err != nil || !st.Held {
			t.Errorf("inspect as viewer: %+v, %v", st, err)
		}
		if all, err := viewer.List(ctx, ""); err != nil || len(all) != 1 {
			t.Errorf("list as viewer: %+v, %v", all, err)
		}
		if _, err := viewer.Acquire(ctx, store.AcquireRequest{Lease: lease("b", time.Minute)}); !errors.Is(err, recordstore.ErrRefused) {
			t.Errorf("acquire as viewer: %v, want a refusal", err)
		}
		_, err := app.List(ctx, "")
		return err
	}); err != nil {
		t.Errorf("with the least rights: %v", err)
	}
	stranger := as("stranger")
	if _, err := kubernetesstore.Open(t.Context(), "kubernetes://"+s.namespace, &stranger); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), "cannot list") {
		t.Errorf("open without rights: %v, want a refusal", err)
	}
	if e, err := kubernetesstore.Examine(t.Context(), "kubernetes://"+s.namespace, &stranger); err != nil || len(e.Missing) != 5 {
		t.Errorf("examine without rights: %+v, %v, want that all are missing", e, err)
	}
}

// A certificate that nobody trusts is refused, and one that the kubeconfig names is not.
func TestTLS(t *testing.T) {
	need(t)
	s := own(t)
	ca, err := os.ReadFile(s.file("certificates/apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: s.url(), BearerToken: admin}
	if _, err := kubernetesstore.Open(t.Context(), "kubernetes://"+s.namespace, &kubernetesstore.Options{Config: config}); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("open: %v, want that the certificate is not trusted", err)
	}
	config.CAData = ca
	e, err := kubernetesstore.Examine(t.Context(), "kubernetes://"+s.namespace, &kubernetesstore.Options{Config: config})
	if err != nil || e.Unusable != nil || e.Unverified {
		t.Errorf("examine: %+v, %v, want a usable server whose certificate is verified", e, err)
	}
}

// While only this store changes an object, the server lists no managers of its fields. If another
// program applies a field, the server keeps the entry of that program.
func TestManagedFields(t *testing.T) {
	need(t)
	srv := start(t)
	s := open(t, srv, kubernetesstore.Options{})
	managers := func() (all []string) {
		list, _ := part(srv.ask(t, http.MethodGet, srv.path("a"), "", nil), "metadata", "managedFields").([]any)
		for _, m := range list {
			all = append(all, m.(map[string]any)["manager"].(string))
		}
		slices.Sort(all)
		return all
	}
	use(t, s, "a")
	if all := managers(); len(all) > 0 {
		t.Errorf("managers %q of an object that nobody else has changed, want none", all)
	}
	srv.ask(t, http.MethodPatch, srv.path("a")+"?fieldManager=gitops", "application/apply-patch+yaml", map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "a", "labels": map[string]string{"team": "t"}},
	})
	before := managers()
	use(t, s, "a") // with an old version in the cache
	use(t, s, "a")
	if all := managers(); !slices.Contains(before, "gitops") || !slices.Contains(all, "gitops") {
		t.Errorf("managers %q after locks, %q before, want gitops among them", all, before)
	}
}

// While the API server is killed and stopped, no two owners hold the lock at once, tokens rise, and each
// client gets it.
func TestContestOfKilledServer(t *testing.T) {
	need(t)
	s := own(t)
	var clients []store.Engine
	for range 6 {
		clients = append(clients, open(t, s, kubernetesstore.Options{Timeout: 20 * time.Second}))
	}
	contend(t, 4*time.Second, "undisturbed", func(goesOn func(string)) {
		for range 2 {
			s.process.Kill()
			if err := s.api.start(); err != nil {
				t.Error(err)
				return
			}
			goesOn("after the API server was killed")
		}
		if err := s.process.Freeze(); err != nil {
			t.Error(err)
		}
		time.Sleep(6 * time.Second) // longer than the TTL
		if err := s.process.Thaw(); err != nil {
			t.Error(err)
		}
		goesOn("after it was stopped")
	}, clients...)
}

// The same holds while the leader of etcd is killed, stopped, and cut off from the other members. The API
// server goes on sending requests to it.
func TestContestOfHarmedLeader(t *testing.T) {
	t.Parallel()
	s := three(t)
	var clients []store.Engine
	for range 3 {
		clients = append(clients, open(t, s, kubernetesstore.Options{Timeout: 20 * time.Second}))
	}
	contend(t, 8*time.Second, "undisturbed", func(goesOn func(string)) {
		if err := s.etcd.LeaderFaults(t.Context(), goesOn); err != nil {
			t.Error(err)
		}
	}, clients...)
}

// Processes that compete while the API server is killed keep the promises of TestTorture, except how long
// they wait.
func TestTortureOfKilledServer(t *testing.T) {
	need(t)
	s := own(t)
	url := "kubernetes://" + s.namespace + "?timeout=20s&kubeconfig=" + kubeconfig(t, s, admin)
	torturetest.Run(t, url, 4*time.Second, 0, func(ctx context.Context) {
		for ctx.Err() == nil {
			time.Sleep(2 * time.Second)
			s.process.Kill()
			if err := s.api.start(); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// The same holds while each leader of etcd is killed.
func TestTortureOfKilledLeader(t *testing.T) {
	t.Parallel()
	s := three(t)
	url := "kubernetes://" + s.namespace + "?timeout=20s&kubeconfig=" + kubeconfig(t, s, admin)
	torturetest.Run(t, url, 4*time.Second, 0, func(ctx context.Context) {
		for ctx.Err() == nil {
			time.Sleep(2 * time.Second) // locks are used undisturbed
			leader, err := s.etcd.Leader(t.Context(), -1)
			if err != nil {
				t.Error(err)
				return
			}
			s.etcd.Members[leader].Kill()
			if _, err := s.etcd.Leader(t.Context(), leader); err != nil { // until the others have elected one
				t.Error(err)
				return
			}
			if err := s.etcd.Members[leader].Restart(); err != nil {
				t.Error(err)
				return
			}
		}
	})
}
