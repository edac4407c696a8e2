package kubernetesstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func TestParseURL(t *testing.T) {
	for url, want := range map[string]Options{
		"kubernetes://jobs": {namespace: "jobs"},
		"kubernetes://a-1/": {namespace: "a-1"},
		"kubernetes://jobs?context=prod&kubeconfig=/etc/k&skew=1m&timeout=9s": {namespace: "jobs", Context: "prod", Kubeconfig: "/etc/k", Skew: time.Minute, Timeout: 9 * time.Second},
	} {
		o, err := engine.Options(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want, _ = engine.Options("kubernetes://"+want.namespace, &want) // with the defaults
		if o != want {
			t.Errorf("%s: %+v, want %+v", url, o, want)
		}
	}
	for _, url := range []string{"", "kubernetes:", "kubernetes://", "s3://aaa", "kubernetes://Jobs", "kubernetes://a.b", "kubernetes://me:hush@bbb", "kubernetes://bbb/a", "kubernetes://bbb:6443", "kubernetes://bbb?x=1", "kubernetes://bbb?skew=5", "kubernetes://bbb?skew=-5s", "kubernetes://bbb#x"} {
		if _, err := engine.Options(url, nil); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}
