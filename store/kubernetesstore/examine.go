package kubernetesstore

import (
	"context"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
)

// Examination is what Examine found.
type Examination struct {
	// Node names the server and the namespace.
	Node string
	// Version is that of the server, or empty if it does not say.
	Version string
	// Class is what a lock can require.
	Class store.Class
	// Missing has the verbs that the credentials may not use on Lease objects, but need to.
	Missing []string
	// Unverified reports that the client does not check whom it talks to: there is no TLS, or the
	// certificate of the server is not verified.
	Unverified bool
	// Took is how long a lock and its release took.
	Took time.Duration
	// Unusable is why no lock could be acquired there, or nil.
	Unusable error
}

// Examine asks for the rights, tries whether the server refuses writes of an old
// resourceVersion, and acquires and releases a lock with a name that nobody uses. It changes no lock
// that others use. It blocks for a few times Options.Timeout at most. The error is about the
// URL and the options; what is wrong with the server is in the result.
func Examine(ctx context.Context, url string, o *Options) (Examination, error) {
	var x Examination
	e, err := engine.Examine(ctx, url, o, func(ctx context.Context, d *driver) error {
		x.Unverified = d.unverified
		if err := d.ask(ctx, &x); err != nil {
			return err
		}
		return d.conflicts(ctx)
	})
	x.Node, x.Class, x.Took, x.Unusable = e.Node, e.Class, e.Took, e.Unusable
	return x, err
}

// ask finds out the version of the server and the rights.
func (d *driver) ask(ctx context.Context, e *Examination) error {
	if v, _, err := do[struct{ GitVersion string }](ctx, d, http.MethodGet, d.server+"/version", nil); err == nil {
		e.Version = v.GitVersion
	}
	type review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			ResourceAttributes map[string]string `json:"resourceAttributes"`
		} `json:"spec"`
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	for _, verb := range verbs[ToLock] {
		ask := review{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
		ask.Spec.ResourceAttributes = map[string]string{"group": "coordination.k8s.io", "resource": "leases", "namespace": d.o.namespace, "verb": verb}
		told, err := objects.Again(ctx, func(ctx context.Context) (*review, error) {
			told, _, err := do[review](ctx, d, http.MethodPost, d.server+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", ask)
			return told, err
		})
		if err != nil {
			return err
		}
		if !told.Status.Allowed {
			e.Missing = append(e.Missing, verb)
		}
	}
	return nil
}

// conflicts returns an error unless the server refuses to make an object that exists, and to replace a
// version that does not.
func (d *driver) conflicts(ctx context.Context) error {
	return objects.Conditions{
		IfAbsent: "that an object exists", IfSame: "resourceVersion", Absent: absent, Other: `{"metadata":{"uid":"none","resourceVersion":"1"}}`, // no Lease has this revision
	}.Try(ctx, d, probeKey)
}
