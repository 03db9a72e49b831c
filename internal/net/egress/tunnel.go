package egress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// tunnel is a Konnectivity server behind a socket: the ProxyService of apiserver-network-proxy. All connections share
// one gRPC connection. Each is a call of Proxy with its own flow control, since the server identifies a connection by
// its call. Kubernetes instead makes a gRPC connection for each.
type tunnel struct {
	socket  string
	conn    *grpc.ClientConn
	metrics *tunnelMetrics
}

// connectWait is how long a dial waits for an unreachable Konnectivity server: longer than a restart takes.
const connectWait = 5 * time.Second

// newTunnel returns a tunnel that connects at its first use.
func newTunnel(socket string, metrics *tunnelMetrics) (*tunnel, error) {
	conn, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}),
		grpc.WithMaxHeaderListSize(foreign.MaxHeader), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
			},
			MinConnectTimeout: connectWait,
		}))
	if err != nil {
		return nil, err
	}
	return &tunnel{socket: socket, conn: conn, metrics: metrics}, nil
}

func (t *tunnel) close() error { return t.conn.Close() }

func (*tunnel) labels() (protocol, transport string) { return "grpc", "uds" }

func (t *tunnel) dial(ctx context.Context, address string) (_ net.Conn, failed string, err error) {
	life, end := context.WithCancel(context.Background()) // a connection outlives the context that it was dialled with
	stop := context.AfterFunc(ctx, end)
	late := time.AfterFunc(connectWait, end)
	at := t.metrics.begin()
	stream, err := client.NewProxyServiceClient(t.conn).Proxy(life, grpc.WaitForReady(true))
	if !late.Stop() || err != nil {
		end()
		at.to("")
		return nil, stageConnect, fmt.Errorf("connect to the Konnectivity server at %s: %w", t.socket, why(ctx, err))
	}
	at.to(statusDialing)
	stream = t.metrics.counted(stream)
	id, reason, err := greet(stream, address)
	if !stop() { // the connection would end at once
		err = fmt.Errorf("dial timeout, context: %w", context.Cause(ctx))
	}
	if err != nil {
		t.metrics.failed(ctx, reason)
		end()
		at.to("")
		return nil, stageProxy, err
	}
	at.to(statusOK)
	return newConn(stream, end, at, id, [2]addr{addr(address), addr(t.socket)}), "", nil
}

// why returns why a call could not begin: the caller's context, or the last error of gRPC.
func why(ctx context.Context, err error) error {
	text := "it does not answer"
	if err != nil {
		text = foreign.Text(status.Convert(err).Message())
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w (%s)", cause, text)
	}
	return errors.New(text)
}

// greet requests a connection to an address and returns its number, or the failure reason for metrics. The error texts
// come from Kubernetes' client, or from the agent that could not connect.
func greet(stream client.ProxyService_ProxyClient, address string) (id int64, reason string, err error) {
	random := rand.Int64()
	err = stream.Send(&client.Packet{Type: client.PacketType_DIAL_REQ, Payload: &client.Packet_DialRequest{
		DialRequest: &client.DialRequest{Protocol: "tcp", Address: address, Random: random},
	}})
	if err != nil {
		if _, why := stream.Recv(); why != nil { // Send only returns EOF
			err = why
		}
		return 0, failedTunnel, fmt.Errorf("tunnel closed: %w", foreign.Error(err))
	}
	for {
		p, err := stream.Recv()
		if err != nil {
			return 0, failedTunnel, fmt.Errorf("tunnel closed: %w", foreign.Error(err))
		}
		switch p.Type {
		case client.PacketType_DIAL_RSP:
			answer := p.GetDialResponse()
			switch {
			case answer.GetRandom() != random:
			case answer.GetError() != "":
				return 0, failedEndpoint, errors.New(foreign.Text(answer.GetError()))
			default:
				return answer.GetConnectID(), "", nil
			}
		case client.PacketType_DIAL_CLS, client.PacketType_CLOSE_RSP:
			return 0, failedClosed, errors.New("dial closed")
		}
	}
}
