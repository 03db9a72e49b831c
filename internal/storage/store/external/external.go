package external

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/fault"
)

var (
	_ store.Opener     = Config{}
	_ store.Backend    = (*remote)(nil)
	_ store.Maintainer = (*remote)(nil)
)

// requestTimeout bounds a request, so that a lost request returns an error.
const requestTimeout = 10 * time.Second

// checkTimeout bounds Check, as kube-apiserver bounds its check of etcd: probes are less patient than writers.
const checkTimeout = 2 * time.Second

// maxRequestBytes is beyond each cluster's own limit, which decides.
const maxRequestBytes = 16 << 20

// connectTimeout bounds Open while etcd does not respond.
const connectTimeout = 10 * time.Second

// remote is an etcd cluster elsewhere.
type remote struct {
	client    *clientv3.Client
	kv        etcdserverpb.KVClient // of client, with the client's retries
	members   *members
	guards    *guards // nil with a single endpoint, behind which there is no other member to send a write to
	prefix    string
	revisions shared
	fault     *fault.Fault // set for data of an unknown format; a lost cluster may come back

	// full is set when etcd has refused a write for lack of space, until it accepts writes again.
	full atomic.Bool

	wanted atomic.Int64 // the highest argument of requestProgress
	mu     struct {
		sync.Mutex
		nudges map[chan struct{}]bool // one for each running watch, capacity 1: a second nudge adds nothing
	}
}

// Open implements store.Opener.
func (c Config) Open(ctx context.Context, e store.Environment) (store.Backend, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("store: external etcd has no endpoints; name them with --etcd-servers")
	}
	names := strings.Join(c.Endpoints, ", ")
	tlsConfig, err := clientTLS(c)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            c.Endpoints,
		TLS:                  tlsConfig,
		DialTimeout:          connectTimeout,
		DialKeepAliveTime:    10 * time.Second, // gRPC's minimum
		DialKeepAliveTimeout: 3 * time.Second,
		MaxCallSendMsgSize:   maxRequestBytes,
		Logger:               fault.Logger(e.Log, fault.New()),
		DialOptions:          append(dialOptions(e.Tracing), c.dialOptions()...),
	})
	if err != nil {
		return nil, fmt.Errorf("store: etcd at %s: %w; check --etcd-servers", names, err)
	}
	r := &remote{
		client: client, kv: clientv3.RetryKVClient(client), members: newMembers(client, c.Endpoints, e.Log),
		prefix: e.Prefix, fault: fault.New(),
	}
	if len(c.Endpoints) > 1 {
		r.guards = newGuards(r, e.Log)
	}
	r.mu.nudges = map[chan struct{}]bool{}
	r.revisions.fetch = r.fetchRevision

	bound, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := r.connect(bound); err != nil {
		client.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("store: connecting to etcd at %s was interrupted: %w", names, ctx.Err())
		}
		return nil,
			fmt.Errorf(
				"store: etcd at %s does not answer: %w; check --etcd-servers, that it runs, and its certificates",
				names, err)
	}
	return r, nil
}

// dialOptions have connections opened by Dial.
func (c Config) dialOptions() []grpc.DialOption {
	if c.Dial == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return c.Dial(ctx, "tcp", address)
	})}
}

// dialOptions have the calls of a traced request traced.
func dialOptions(tracing trace.TracerProvider) []grpc.DialOption {
	if tracing == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithMessageEvents(otelgrpc.ReceivedEvents, otelgrpc.SentEvents),
		otelgrpc.WithPropagators(request.Propagator), otelgrpc.WithTracerProvider(tracing),
		otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
	))}
}

// connect retries until a linearizable read succeeds. On a timeout it returns the last error, which is more specific
// than "deadline exceeded".
func (r *remote) connect(ctx context.Context) error {
	var last error
	for {
		try, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := r.fetchRevision(try)
		cancel()
		if err == nil {
			return nil
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func clientTLS(c Config) (*tls.Config, error) {
	if c.CAFile == "" && c.CertFile == "" && c.KeyFile == "" {
		return nil, nil
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("store: --etcd-certfile and --etcd-keyfile must be given together")
	}
	if c.CAFile != "" { // without certificates the client would trust no server
		pem, err := os.ReadFile(c.CAFile)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s holds no certificate in PEM", c.CAFile)
		}
		if err != nil {
			return nil, fmt.Errorf("store: etcd's CA cannot be used: %w; check --etcd-cafile", err)
		}
	}
	info := transport.TLSInfo{TrustedCAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile}
	config, err := info.ClientConfig()
	if err != nil {
		return nil,
			fmt.Errorf(
				"store: etcd's TLS files (CA %q, certificate %q, key %q) cannot be used: %w; check --etcd-cafile, --etcd-certfile and --etcd-keyfile", c.CAFile, c.CertFile, c.KeyFile, err)
	}
	return config, nil
}

// Range implements store.Backend.
func (r *remote) Range(ctx context.Context, of store.Span) (store.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	opts := []clientv3.OpOption{clientv3.WithLimit(of.Limit), clientv3.WithRev(of.Revision)}
	if of.End != nil {
		opts = append(opts, clientv3.WithRange(string(of.End)))
	}
	resp, err := hedge(ctx, r.suspect, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return r.client.Get(ctx, string(of.Start), opts...)
	})
	if err != nil {
		return store.Found{}, store.ReadError(err)
	}
	return store.Found{Keys: resp.Kvs, More: resp.More, Revision: resp.Header.Revision}, nil
}

// Check implements store.Backend.
func (r *remote) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	_, err := r.client.Get(ctx, r.prefix, clientv3.WithCountOnly())
	return store.ReadError(err)
}

// Revision implements store.Backend. Requests are shared between callers: see shared.
func (r *remote) Revision(ctx context.Context) (int64, error) { return r.revisions.get(ctx) }

func (r *remote) fetchRevision(ctx context.Context) (int64, error) {
	resp, err := hedge(ctx, r.suspect, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return r.client.Get(ctx, r.prefix, clientv3.WithCountOnly()) // a key that does not exist
	})
	if err != nil {
		return 0, store.ReadError(err)
	}
	return resp.Header.Revision, nil
}

// Failed implements store.Backend.
func (r *remote) Failed() <-chan struct{} { return r.fault.Done() }

// Failure implements store.Backend.
func (r *remote) Failure() error { return r.fault.Err() }

// Fail implements store.Backend.
func (r *remote) Fail(reason error) { r.fault.Fail(reason) }

// Shared implements store.Backend.
func (r *remote) Shared() bool { return true }

// ClientURL implements store.Backend.
func (r *remote) ClientURL() string { return "" }

// Maintainer implements store.Backend.
func (r *remote) Maintainer() store.Maintainer { return r }

// Close implements store.Backend.
func (r *remote) Close() error {
	r.guards.close()
	r.client.Close()
	r.members.close()
	return r.Failure()
}
