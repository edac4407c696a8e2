package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/filestore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
	"github.com/leasehold-dev/leasehold/store/zkstore"
)

// examiners examine stores, by the first name of the scheme.
var examiners = map[string]func(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error){
	"file":           examineFile,
	"redis":          examineRedis,
	"redis-sentinel": examineRedis,
	"redis-cluster":  examineCluster,
	"postgres":       examineDatabase,
	"mysql":          examineDatabase,
	"etcd":           examineEtcd,
	"zookeeper":      examineZooKeeper,
	"nats":           examineNATS,
	"s3":             examineS3,
	"gs":             examineGCS,
	"azblob":         examineAzure,
	"kubernetes":     examineKubernetes,
	"https":          examineRemote,
	"memory":         func(context.Context, string, doctorFlags) ([]doctor.Finding, error) { return doctor.Memory(), nil },
}

func examineFile(ctx context.Context, url string, _ doctorFlags) ([]doctor.Finding, error) {
	path, options, err := filestore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	e, err := filestore.Examine(ctx, path, options)
	if err != nil {
		return nil, err
	}
	return doctor.File(e), nil
}

func examineDatabase(ctx context.Context, url string, _ doctorFlags) ([]doctor.Finding, error) {
	u, err := sqlstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	db, err := u.OpenDB()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return doctor.Database(sqlstore.Examine(ctx, db, u.Dialect, &u.Options)), nil
}

func examineZooKeeper(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	options, err := zkstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	e, err := zkstore.Examine(ctx, options)
	if err != nil {
		return nil, err
	}
	return doctor.ZooKeeper(e, o.ttl), nil
}

func examineRedis(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	e, err := redisadmin.Examine(ctx, url, nil, redisadmin.Scope{TTL: o.ttl, Prefix: o.prefix})
	if err != nil {
		return nil, err
	}
	return doctor.Redis(e), nil
}

func examineCluster(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	e, err := redisadmin.ExamineCluster(ctx, url, nil, redisadmin.Scope{TTL: o.ttl, Prefix: o.prefix})
	if err != nil {
		return nil, err
	}
	return doctor.RedisCluster(e), nil
}
