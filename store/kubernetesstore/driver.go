package kubernetesstore

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// driver keeps records in Lease objects of one namespace.
type driver struct {
	o      Options
	client objects.Client
	server string // URL
	node   string // names the server and the namespace in errors
	// unverified reports that the client does not check whom it talks to.
	unverified bool
}

var (
	_ recordstore.Watcher      = (*driver)(nil)
	_ recordstore.Keyer        = (*driver)(nil)
	_ recordstore.ChangeWriter = (*driver)(nil)
	_ recordstore.Bounded      = (*driver)(nil)
)

// Describe implements recordstore.Driver.
func (d *driver) Describe() store.Caps {
	return store.Caps{Engine: "kubernetes", Reach: "network", Clock: "each client's own, from when it sees a lease", Class: store.CrashSafe}
}

// Node implements objects.Driver.
func (d *driver) Node() string { return d.node }

// MaxLen implements recordstore.Bounded. All annotations of an object together have 256 KiB at most, and a
// few KiB are left to others.
func (d *driver) MaxLen() int { return base64.StdEncoding.DecodedLen(252 << 10) }

// Key implements recordstore.Keyer.
func (d *driver) Key(name string) string { return keyOf(name) }

// leases returns the URL of the objects, or of one if name is not empty.
func (d *driver) leases(name string, query url.Values) string {
	path := d.server + "/apis/" + apiVersion + "/namespaces/" + d.o.namespace + "/leases"
	if name != "" {
		path += "/" + name
	}
	return path + "?" + query.Encode()
}

// do makes a request, and decodes the answer into a T. If the server does not accept the credentials,
// it makes the request again once, since they may just have been replaced.
func do[T any](ctx context.Context, d *driver, method, to string, body any) (*T, *http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, nil, err
		}
	}
	for try := 0; ; try++ {
		answer, res, err := d.client.Do(ctx, method, to, http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}, text)
		if f := (*objects.Failure)(nil); try == 0 && errors.As(err, &f) && f.Res.StatusCode == http.StatusUnauthorized {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		v := new(T)
		return v, res, decode(answer, v)
	}
}

// say completes f by what the server says.
func say(f *objects.Failure, body []byte) {
	var said struct{ Reason, Message string }
	if json.Unmarshal(body, &said) == nil && said.Message != "" {
		f.Code, f.Text = said.Reason, said.Message
	}
}

func conflict(f *objects.Failure) bool { return f.Res.StatusCode == http.StatusConflict }

// missing reports whether a server says that something does not exist.
func missing(err error) bool {
	f := (*objects.Failure)(nil)
	return errors.As(err, &f) && f.Res.StatusCode == http.StatusNotFound
}

// list is a page of objects.
type list struct {
	Metadata struct{ ResourceVersion, Continue string }
	Items    []object
}

// Read implements recordstore.Driver. Without a resourceVersion in the request, etcd answers, and
// not a cache.
func (d *driver) Read(ctx context.Context, key string) (recordstore.Item, error) {
	o, res, err := do[object](ctx, d, http.MethodGet, d.leases(key, nil), nil)
	if missing(err) {
		it := recordstore.Item{Version: absent}
		if it.Floor, err = d.floor(ctx, key); err == nil {
			it.Order = it.Floor
		}
		return it, err
	}
	if err != nil {
		return recordstore.Item{}, err
	}
	return o.item(res.Header.Get("Date"), d.o.Skew)
}

// floor returns the revision of etcd, which has risen with every write of a record.
func (d *driver) floor(ctx context.Context, key string) (uint64, error) {
	l, _, err := do[list](ctx, d, http.MethodGet, d.leases("", url.Values{"fieldSelector": {"metadata.name=" + key}}), nil)
	if err != nil {
		return 0, err
	}
	return revision(l.Metadata.ResourceVersion)
}

// Write implements recordstore.Driver.
func (d *driver) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	return d.WriteChange(ctx, key, value, version, recordstore.Change{Idle: idle})
}

// WriteChange implements recordstore.ChangeWriter. It replaces the whole object, since a patch costs the API
// server more. If the object is gone, a server would make it anew, but the version has the uid of the
// object, and a new one would have another.
func (d *driver) WriteChange(ctx context.Context, key string, value []byte, version string, c recordstore.Change) (string, error) {
	var o object
	if err := decode([]byte(version), &o); err != nil {
		return "", recordstore.Refusal("version %q: %w", version, err)
	}
	method, to, meta := http.MethodPut, key, o.at("metadata")
	if version == absent {
		method, to = http.MethodPost, ""
	}
	if d.o.Skew > 0 && meta["managedFields"] != nil {
		meta["managedFields"] = noted
	}
	o["apiVersion"], o["kind"], meta["name"] = apiVersion, "Lease", key
	meta.at("labels")[recordKey], meta.at("annotations")[recordKey] = recordForm, base64.StdEncoding.EncodeToString(value)
	o.holdBy(c)
	answer, _, err := do[object](ctx, d, method, d.leases(to, url.Values{"fieldManager": {manager}}), o)
	if err != nil {
		return "", err
	}
	return answer.version()
}

// pageSize is how many objects a request lists at most, so that the answer is not too long even if all have
// a thousand waiters.
const pageSize = "50"

// List implements recordstore.Driver.
func (d *driver) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	query := url.Values{"labelSelector": {recordKey}, "limit": {pageSize}}
	seen := map[string]bool{probeKey: true}
	for {
		var res *http.Response
		page, err := objects.Again(ctx, func(ctx context.Context) (l *list, err error) {
			l, res, err = do[list](ctx, d, http.MethodGet, d.leases("", query), nil)
			return l, err
		})
		if f := (*objects.Failure)(nil); errors.As(err, &f) && f.Res.StatusCode == http.StatusGone && query.Has("continue") {
			query.Del("continue") // etcd has forgotten that revision, so the list begins anew
			continue
		}
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			name := o.at("metadata").text("name")
			if seen[name] {
				continue
			}
			seen[name] = true
			it, err := o.item(res.Header.Get("Date"), d.o.Skew)
			if err != nil {
				return err
			}
			if err := each(name, it); err != nil {
				return err
			}
		}
		if page.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// Close implements recordstore.Driver.
func (d *driver) Close() error {
	utilnet.CloseIdleConnectionsFor(d.client.HTTP.Transport)
	return nil
}
