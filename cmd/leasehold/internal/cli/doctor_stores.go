package cli

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
	"github.com/leasehold-dev/leasehold/store/filestore"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
	"github.com/leasehold-dev/leasehold/store/natsstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/leasehold-dev/leasehold/store/remotestore"
	"github.com/leasehold-dev/leasehold/store/s3store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
	"github.com/leasehold-dev/leasehold/store/zkstore"
)

// examiner examines the store at a URL.
type examiner func(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error)

// examiners examine stores, by the first name of the scheme.
var examiners = map[string]examiner{
	"file":           examined(filestore.Examine, ofAnyTTL(doctor.File)),
	"redis":          examinedRedis(redisadmin.Examine, doctor.Redis),
	"redis-sentinel": examinedRedis(redisadmin.Examine, doctor.Redis),
	"redis-cluster":  examinedRedis(redisadmin.ExamineCluster, doctor.RedisCluster),
	"postgres":       examined(sqlstore.Examine, ofAnyTTL(doctor.Database)),
	"mysql":          examined(sqlstore.Examine, ofAnyTTL(doctor.Database)),
	"etcd":           examined(etcdstore.Examine, doctor.Etcd),
	"zookeeper":      examined(zkstore.Examine, doctor.ZooKeeper),
	"nats":           examined(natsstore.Examine, doctor.NATS),
	"s3":             examined(s3store.Examine, doctor.S3),
	"gs":             examined(gcsstore.Examine, doctor.GCS),
	"azblob":         examined(azblobstore.Examine, doctor.Azure),
	"kubernetes":     examined(kubernetesstore.Examine, doctor.Kubernetes),
	"https":          examineRemote,
	"memory":         func(context.Context, string, doctorFlags) ([]doctor.Finding, error) { return doctor.Memory(), nil },
}

// examined returns an examiner.
func examined[Options, Facts any](
	examine func(context.Context, string, *Options) (Facts, error),
	conclude func(Facts, time.Duration) []doctor.Finding,
) examiner {
	return func(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
		facts, err := examine(ctx, url, nil)
		if err != nil {
			return nil, err
		}
		return conclude(facts, o.ttl), nil
	}
}

// ofAnyTTL is for conclusions that do not depend on the TTL of locks.
func ofAnyTTL[Facts any](conclude func(Facts) []doctor.Finding) func(Facts, time.Duration) []doctor.Finding {
	return func(f Facts, _ time.Duration) []doctor.Finding { return conclude(f) }
}

func examinedRedis[Facts any](
	examine func(context.Context, string, *redisstore.Options, redisadmin.Scope) (Facts, error),
	conclude func(Facts) []doctor.Finding,
) examiner {
	return func(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
		facts, err := examine(ctx, url, nil, redisadmin.Scope{TTL: o.ttl, Prefix: o.prefix})
		if err != nil {
			return nil, err
		}
		return conclude(facts), nil
	}
}

func examineRemote(ctx context.Context, url string, _ doctorFlags) ([]doctor.Finding, error) {
	st, err := remotestore.Open(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	return doctor.Remote(st.Caps()), nil
}
