package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
	"github.com/leasehold-dev/leasehold/store/filestore"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
	"github.com/leasehold-dev/leasehold/store/natsstore"
	"github.com/leasehold-dev/leasehold/store/s3store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// engineCase is an examination that leads to one finding.
type engineCase[Examination any] struct {
	e        Examination
	severity Severity
	code     Code
	says     string
}

var fileCases = []engineCase[filestore.Examination]{
	{filestore.Examination{Network: "NFS"}, Error, "file-on-network", "NFS"},
	{filestore.Examination{Exposed: errors.New("others can write it")}, Error, "file-exposed", "others can write it"},
	{filestore.Examination{Exposed: errors.New("others can write it"), Shared: true}, Info, "file-shared", "shared=true"},
	{filestore.Examination{Unusable: errors.New("the disk is full")}, Error, "file-unusable", "the disk is full"},
	{filestore.Examination{Free: 1 << 20, FreeKnown: true}, Warning, "file-disk-low", "1 MiB"},
	{filestore.Examination{Missing: true}, Info, "file-missing", "no such folder"},
	{filestore.Examination{Missing: true, Unusable: errors.New("denied")}, Error, "file-unusable", "denied"},
}

var databaseCases = []engineCase[sqlstore.Examination]{
	{sqlstore.Examination{Unusable: errors.New("no route")}, Error, "database-unusable", "no route"},
	{sqlstore.Examination{Known: true, Server: sqlstore.Server{Why: "fsync is off"}}, Warning, "database-not-durable", "fsync is off"},
	{sqlstore.Examination{Known: true, Polled: "a pooler"}, Warning, "database-pooled", "poll"},
}

var natsCases = []engineCase[natsstore.Examination]{
	{natsstore.Examination{Unusable: errors.New("authorization violation")}, Error, "nats-unusable", "authorization violation"},
	{natsstore.Examination{Replicas: 3}, Warning, "nats-not-synced", "lose power"},
	{natsstore.Examination{Class: store.CrashSafe, Replicas: 1}, Info, "nats-few-replicas", "1 replicas"},
	{natsstore.Examination{Class: store.Consensus, Replicas: 3, Unsynced: []string{"n1"}, Unseen: []string{"n2"}}, Error, "nats-sync-wrong", "n1"},
	{natsstore.Examination{Class: store.Consensus, Replicas: 3, Unseen: []string{"n2"}}, Info, "nats-sync-unseen", "n2"},
	{natsstore.Examination{Class: store.Consensus, Replicas: 3, Behind: []string{"n2"}}, Warning, "nats-replica-behind", "n2"},
	{natsstore.Examination{Class: store.Consensus, Replicas: 3, Took: 2 * time.Second}, Warning, "nats-slow", "2s"},
}

var s3Cases = []engineCase[s3store.Examination]{
	{s3store.Examination{Unusable: errors.New("AccessDenied")}, Error, "s3-unusable", "AccessDenied"},
	{s3store.Examination{Class: store.CrashSafe, Racy: true}, Error, "s3-racy", "two clients"},
	{s3store.Examination{}, Warning, "s3-not-durable", "efficiency"},
	{s3store.Examination{Class: store.CrashSafe, Took: 2 * time.Second}, Warning, "s3-slow", "2s"},
}

var gcsCases = []engineCase[gcsstore.Examination]{
	{gcsstore.Examination{Unusable: errors.New("forbidden")}, Error, "gcs-unusable", "forbidden"},
	{gcsstore.Examination{}, Warning, "gcs-other-server", "efficiency"},
	{gcsstore.Examination{Class: store.CrashSafe, Took: 2 * time.Second}, Warning, "gcs-slow", "2s"},
}

var azureCases = []engineCase[azblobstore.Examination]{
	{azblobstore.Examination{Unusable: errors.New("AuthorizationFailure")}, Error, "azure-unusable", "AuthorizationFailure"},
	{azblobstore.Examination{}, Warning, "azure-other-server", "efficiency"},
	{azblobstore.Examination{Class: store.CrashSafe, Took: 2 * time.Second}, Warning, "azure-slow", "2s"},
}

var kubernetesCases = []engineCase[kubernetesstore.Examination]{
	{kubernetesstore.Examination{Unusable: errors.New("no such host")}, Error, "kubernetes-unusable", "no such host"},
	{kubernetesstore.Examination{Missing: []string{"create", "update"}, Unusable: errors.New("403")}, Error, "kubernetes-rights", "create, update"},
	{kubernetesstore.Examination{Class: store.CrashSafe, Unverified: true}, Warning, "kubernetes-unverified", "in between"},
	{kubernetesstore.Examination{Class: store.CrashSafe, Took: 2 * time.Second}, Warning, "kubernetes-slow", "2s"},
}

// ofTenSeconds draws conclusions about locks with a TTL of ten seconds.
func ofTenSeconds[Examination any](conclude func(Examination, time.Duration) []Finding) func(Examination) []Finding {
	return func(e Examination) []Finding { return conclude(e, 10*time.Second) }
}

// findingsOf checks that each case leads to its one finding, and a sound store to none.
func findingsOf[Examination any](t *testing.T, cases []engineCase[Examination], sound Examination, conclude func(Examination) []Finding) {
	t.Helper()
	for _, c := range cases {
		got := conclude(c.e)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v: %+v, want one %v %s with %q", c.e, got, c.severity, c.code, c.says)
		}
	}
	if got := conclude(sound); got == nil || len(got) != 0 {
		t.Errorf("a sound %T: %+v, want an empty list", sound, got)
	}
}

func TestFileFindings(t *testing.T) {
	findingsOf(t, fileCases, filestore.Examination{Path: "/x", FreeKnown: true, Free: 1 << 40}, File)
}

func TestDatabaseFindings(t *testing.T) {
	findingsOf(t, databaseCases, sqlstore.Examination{Known: true}, Database)
}

func TestNATSFindings(t *testing.T) {
	findingsOf(t, natsCases, natsstore.Examination{Class: store.Consensus, Replicas: 3}, ofTenSeconds(NATS))
}

func TestS3Findings(t *testing.T) {
	findingsOf(t, s3Cases, s3store.Examination{Class: store.CrashSafe}, ofTenSeconds(S3))
}

func TestGCSFindings(t *testing.T) {
	findingsOf(t, gcsCases, gcsstore.Examination{Class: store.CrashSafe}, ofTenSeconds(GCS))
}

func TestAzureFindings(t *testing.T) {
	findingsOf(t, azureCases, azblobstore.Examination{Class: store.CrashSafe}, ofTenSeconds(Azure))
}

func TestKubernetesFindings(t *testing.T) {
	findingsOf(t, kubernetesCases, kubernetesstore.Examination{Class: store.CrashSafe}, ofTenSeconds(Kubernetes))
}
