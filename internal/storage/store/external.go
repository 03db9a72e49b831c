package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/bowsprit/bowsprit/internal/request"
)

// connectTimeout bounds Open while etcd does not respond.
const connectTimeout = 10 * time.Second

// remote is an etcd cluster elsewhere.
type remote struct {
	client    *clientv3.Client
	members   *members
	guards    *guards // nil with a single endpoint, behind which there is no other member to send a write to
	prefix    string
	revisions shared
	fault     *fault // set for data of an unknown format; a lost cluster may come back

	wanted atomic.Int64 // the highest argument of requestProgress
	mu     struct {
		sync.Mutex
		nudges map[chan struct{}]bool // one for each running watch, capacity 1: a second nudge adds nothing
	}
}

func openExternal(
	ctx context.Context, c External, prefix string, tracing trace.TracerProvider, log *slog.Logger,
) (*remote, *clientv3.Client, error) {
	if len(c.Endpoints) == 0 {
		return nil, nil, errors.New("store: external etcd has no endpoints; name them with --etcd-servers")
	}
	names := strings.Join(c.Endpoints, ", ")
	tlsConfig, err := clientTLS(c)
	if err != nil {
		return nil, nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            c.Endpoints,
		TLS:                  tlsConfig,
		DialTimeout:          connectTimeout,
		DialKeepAliveTime:    10 * time.Second, // gRPC's minimum
		DialKeepAliveTimeout: 3 * time.Second,
		MaxCallSendMsgSize:   16 << 20, // the cluster's own limit decides
		Logger:               etcdLogger(log, newFault()),
		DialOptions:          append(dialOptions(tracing), c.dialOptions()...),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("store: etcd at %s: %w; check --etcd-servers", names, err)
	}
	r := &remote{
		client: client, members: newMembers(client, c.Endpoints, log), prefix: prefix, fault: newFault(),
	}
	if len(c.Endpoints) > 1 {
		r.guards = newGuards(client, r.members.suspect, log)
	}
	r.mu.nudges = map[chan struct{}]bool{}
	r.revisions.fetch = r.fetchRevision

	bound, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := r.connect(bound); err != nil {
		client.Close()
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("store: connecting to etcd at %s was interrupted: %w", names, ctx.Err())
		}
		return nil, nil,
			fmt.Errorf(
				"store: etcd at %s does not answer: %w; check --etcd-servers, that it runs, and its certificates",
				names, err)
	}
	return r, client, nil
}

// dialOptions have connections opened by Dial.
func (c *External) dialOptions() []grpc.DialOption {
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

func clientTLS(c External) (*tls.Config, error) {
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

func (r *remote) read(ctx context.Context, start, end []byte, limit, rev int64) ([]*mvccpb.KeyValue, bool, int64,
	error) {
	opts := []clientv3.OpOption{clientv3.WithLimit(limit), clientv3.WithRev(rev)}
	if end != nil {
		opts = append(opts, clientv3.WithRange(string(end)))
	}
	resp, err := hedge(ctx, r.members.suspect, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return r.client.Get(ctx, string(start), opts...)
	})
	if err != nil {
		return nil, false, 0, readError(err)
	}
	return resp.Kvs, resp.More, resp.Header.Revision, nil
}

// saw has no effect: an external etcd is always queried for its revision.
func (r *remote) saw(int64) {}

// revision shares requests between callers: see shared.
func (r *remote) revision(ctx context.Context) (int64, error) { return r.revisions.get(ctx) }

func (r *remote) fetchRevision(ctx context.Context) (int64, error) {
	resp, err := hedge(ctx, r.members.suspect, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return r.client.Get(ctx, r.prefix, clientv3.WithCountOnly()) // a key that does not exist
	})
	if err != nil {
		return 0, readError(err)
	}
	return resp.Header.Revision, nil
}

func (r *remote) failed() <-chan struct{} { return r.fault.c }
func (r *remote) failure() error          { return r.fault.err() }
func (r *remote) clientURL() string       { return "" }
func (r *remote) close() error            { r.members.close(); return r.failure() }
