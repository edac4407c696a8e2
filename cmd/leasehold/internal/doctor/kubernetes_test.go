package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
)

var kubernetesCases = []struct {
	e        kubernetesstore.Examination
	severity Severity
	code     Code
	says     string
}{
	{kubernetesstore.Examination{Unusable: errors.New("no such host")}, Error, KubernetesUnusable, "no such host"},
	{kubernetesstore.Examination{Missing: []string{"create", "patch"}, Unusable: errors.New("403")}, Error, KubernetesRights, "create, patch"},
	{kubernetesstore.Examination{Class: store.CrashSafe, Unverified: true}, Warning, KubernetesUnverified, "in between"},
	{kubernetesstore.Examination{Class: store.CrashSafe, Took: 2 * time.Second}, Warning, KubernetesSlow, "2s"},
}

func TestKubernetesFindings(t *testing.T) {
	for _, c := range kubernetesCases {
		got := Kubernetes(c.e, 10*time.Second)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v, want one %v %s with %q", got, c.severity, c.code, c.says)
		}
	}
	if got := Kubernetes(kubernetesstore.Examination{Class: store.CrashSafe}, 10*time.Second); got == nil || len(got) != 0 {
		t.Errorf("a sound server: %+v, want an empty list", got)
	}
}
