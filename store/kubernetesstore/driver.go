package kubernetesstore

import (
	"bytes"
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
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

const (
	wireForm = "application/vnd.kubernetes.protobuf"
	jsonForm = "application/json"
)

// do makes a request with a body in one of these forms, in which the server also answers. If the server
// does not accept the credentials, it makes the request again once, since they may just have been
// replaced.
func (d *driver) do(ctx context.Context, method, to, form string, body []byte) ([]byte, *http.Response, error) {
	for try := 0; ; try++ {
		answer, res, err := d.client.Do(ctx, method, to, http.Header{"Content-Type": {form}, "Accept": {form}}, body)
		if f := (*objects.Failure)(nil); try == 0 && errors.As(err, &f) && f.Res.StatusCode == http.StatusUnauthorized {
			continue
		}
		return answer, res, err
	}
}

// say completes f by what the server says: in the form of the request, or in JSON if it is not an
// API server that answers.
func say(f *objects.Failure, body []byte) {
	var said struct{ Reason, Message string }
	if bytes.HasPrefix(body, []byte(magic)) {
		status := unwrap(body)
		said.Message, said.Reason = status.text(3), status.text(4)
	} else if json.Unmarshal(body, &said) != nil {
		return
	}
	if said.Message != "" {
		f.Code, f.Text = said.Reason, said.Message
	}
}

func conflict(f *objects.Failure) bool { return f.Res.StatusCode == http.StatusConflict }

// missing reports whether a server says that something does not exist.
func missing(err error) bool {
	f := (*objects.Failure)(nil)
	return errors.As(err, &f) && f.Res.StatusCode == http.StatusNotFound
}

// Read implements recordstore.Driver. Without a resourceVersion in the request, etcd answers, and
// not a cache.
func (d *driver) Read(ctx context.Context, key string) (recordstore.Item, error) {
	answer, res, err := d.do(ctx, http.MethodGet, d.leases(key, nil), wireForm, nil)
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
	o, err := decode(answer)
	if err != nil {
		return recordstore.Item{}, err
	}
	return o.item(res.Header.Get("Date"), d.o.Skew)
}

// page asks for a list. It returns its metadata, and the objects.
func (d *driver) page(ctx context.Context, query url.Values) (meta message, leases []object, date string, err error) {
	answer, res, err := d.do(ctx, http.MethodGet, d.leases("", query), wireForm, nil)
	if err != nil {
		return nil, nil, "", err
	}
	list := unwrap(answer)
	var damaged error
	err = list.fields(func(f field) bool {
		if f.number == itemOf {
			var o object
			o, damaged = decode(f.text)
			leases = append(leases, o)
		}
		return damaged == nil
	})
	return list.inner(metaOf), leases, res.Header.Get("Date"), errors.Join(err, damaged)
}

// The numbers of the fields of a list, besides metaOf, and of its metadata.
const itemOf, listVersionOf, continueOf = 2, 2, 3

// floor returns the revision of etcd, which has risen with every write of a record.
func (d *driver) floor(ctx context.Context, key string) (uint64, error) {
	meta, _, _, err := d.page(ctx, url.Values{"fieldSelector": {"metadata.name=" + key}})
	if err != nil {
		return 0, err
	}
	return revision(meta.text(listVersionOf))
}

// Write implements recordstore.Driver.
func (d *driver) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	return d.WriteChange(ctx, key, value, version, recordstore.Change{Idle: idle})
}

// WriteChange implements recordstore.ChangeWriter. It replaces the whole object, since a patch costs the API
// server more. A server that does not have the object any more would make one, if the version had no
// uid, which no other object has.
func (d *driver) WriteChange(ctx context.Context, key string, value []byte, version string, c recordstore.Change) (string, error) {
	o, err := decode([]byte(version))
	if err != nil {
		return "", recordstore.Refusal("version %q: %w", version, err)
	}
	method, to := http.MethodPut, key
	if version == absent {
		method, to = http.MethodPost, ""
	}
	if d.o.Skew > 0 && o.meta.last(managedOf, textKind).number > 0 {
		o.meta.set(managedOf, noted())
	}
	o.meta.set(nameOf, []byte(key))
	o.meta.setEntry(labelsOf, recordKey, recordForm)
	note := base64.StdEncoding.EncodeToString(value)
	if o.holdBy(c); !c.Other {
		note += " " + o.mark()
	}
	o.meta.setEntry(annotationsOf, recordKey, note)
	answer, _, err := d.do(ctx, method, d.leases(to, nil), wireForm, envelop(apiVersion, "Lease", o.encode()))
	if err != nil {
		return "", err
	}
	if o, err = decode(answer); err != nil {
		return "", err
	}
	return o.version()
}

// pageSize is how many objects a request lists at most, so that the answer is not too long even if all have
// a thousand waiters.
const pageSize = "50"

// List implements recordstore.Driver.
func (d *driver) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	query := url.Values{"labelSelector": {recordKey}, "limit": {pageSize}}
	seen := map[string]bool{probeKey: true}
	for {
		var meta message
		var date string
		leases, err := objects.Again(ctx, func(ctx context.Context) (all []object, err error) {
			meta, all, date, err = d.page(ctx, query)
			return all, err
		})
		if f := (*objects.Failure)(nil); errors.As(err, &f) && f.Res.StatusCode == http.StatusGone && query.Has("continue") {
			query.Del("continue") // etcd has forgotten that revision, so the list begins anew
			continue
		}
		if err != nil {
			return err
		}
		for _, o := range leases {
			name := o.meta.text(nameOf)
			if seen[name] {
				continue
			}
			seen[name] = true
			it, err := o.item(date, d.o.Skew)
			if err != nil {
				return err
			}
			if err := each(name, it); err != nil {
				return err
			}
		}
		if meta.text(continueOf) == "" {
			return nil
		}
		query.Set("continue", meta.text(continueOf))
	}
}

// Close implements recordstore.Driver.
func (d *driver) Close() error {
	utilnet.CloseIdleConnectionsFor(d.client.HTTP.Transport)
	return nil
}
