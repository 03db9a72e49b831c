package egress

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// measured opens an Egress with metrics, and returns a function that reads one of Konnectivity's metrics: the values of
// its series by label values, without zeros.
func measured(t *testing.T, socket string) (*Egress, func(name string) map[string]float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	e, err := Open(mustDecode(t, socket), registry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, func(name string) map[string]float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]float64{}
		for _, family := range families {
			if family.GetName() != "konnectivity_network_proxy_client_"+name {
				continue
			}
			for _, m := range family.Metric {
				labels := ""
				for _, l := range m.Label {
					labels += " " + l.GetName() + "=" + l.GetValue()
				}
				if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
					found[labels[1:]] = v
				}
			}
		}
		return found
	}
}

func expect(t *testing.T, when string, got, want map[string]float64) {
	t.Helper()
	same := len(got) == len(want)
	for k, v := range want {
		same = same && got[k] == v
	}
	if !same {
		t.Errorf("%s:\n got %v\nwant %v", when, got, want)
	}
}

// TestTunnelMetrics follows one connection from its dial to its end, and one that the agent cannot open. Names, labels
// and values equal the metrics of Kubernetes' konnectivity-client.
func TestTunnelMetrics(t *testing.T) {
	t.Parallel()
	k := startKonnectivity(t, false)
	e, of := measured(t, k.socket)
	made, err := e.Dial(Cluster)(t.Context(), "tcp", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "open", of("client_connections"), map[string]float64{"status=ok": 1})
	if _, err := made.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(made, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_ = made.Close()
	<-made.(*conn).over // the other end has confirmed it
	expect(t, "closed", of("client_connections"), nil)
	expect(t, "packets", of("stream_packets_total"), map[string]float64{
		"packet_type=DIAL_REQ segment=from_client": 1, "packet_type=DIAL_RSP segment=to_client": 1,
		"packet_type=DATA segment=from_client": 1, "packet_type=DATA segment=to_client": 1,
		"packet_type=CLOSE_REQ segment=from_client": 1, "packet_type=CLOSE_RSP segment=to_client": 1,
	})

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	if _, err := e.Dial(Cluster)(t.Context(), "tcp", closed.Addr().String()); err == nil {
		t.Fatal("dialled an address where nothing listens")
	}
	expect(t, "refused", of("dial_failure_total"), map[string]float64{"reason=endpoint": 1})
	expect(t, "refused", of("client_connections"), nil)
	expect(t, "no error of gRPC", of("stream_errors_total"), nil)
}

// TestTunnelMetricsBroken has a server that hangs: a caller gives up, and the server dies under another one.
func TestTunnelMetricsBroken(t *testing.T) {
	t.Parallel()
	k := startKonnectivity(t, true)
	e, of := measured(t, k.socket)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	dial := func(ctx context.Context) {
		_, err := e.Dial(Cluster)(ctx, "tcp", "192.0.2.1:1")
		failed <- err
	}
	go dial(ctx)
	<-k.requests
	expect(t, "asked", of("client_connections"), map[string]float64{"status=dialing": 1})
	cancel()
	if err := <-failed; err == nil {
		t.Fatal("dialled")
	}
	<-k.gone
	expect(t, "given up", of("dial_failure_total"), map[string]float64{"reason=context": 1})

	go dial(t.Context())
	<-k.requests
	k.server.Stop()
	if err := <-failed; err == nil {
		t.Fatal("dialled")
	}
	expect(t, "broken", of("dial_failure_total"), map[string]float64{"reason=context": 1, "reason=tunnelclosed": 1})
	expect(t, "broken", of("client_connections"), nil)
	expect(t, "broken", of("stream_errors_total"), map[string]float64{
		"code=Canceled packet_type=Unknown segment=to_client":    1,
		"code=Unavailable packet_type=Unknown segment=to_client": 1,
	})
}

// TestTunnelFailures tests unexpected responses, and a late dial.
func TestTunnelFailures(t *testing.T) {
	t.Parallel()
	late, cancel := context.WithCancelCause(t.Context())
	cancel(errLate)
	m := newTunnelMetrics(prometheus.NewRegistry())
	m.failed(late, failedTunnel)
	for reason, p := range map[string]*client.Packet{
		failedClosed: {Type: client.PacketType_DIAL_CLS}, failedTunnel: nil,
	} {
		_, got, err := greet(&scripted{answer: p}, "192.0.2.1:1")
		if got != reason || err == nil {
			t.Errorf("%v: %q, %v", p, got, err)
		}
		m.failed(t.Context(), got)
	}
	for _, reason := range []string{failedTimeout, failedClosed, failedTunnel} {
		if n := testutil.ToFloat64(m.failures.WithLabelValues(reason)); n != 1 {
			t.Errorf("%s: %v", reason, n)
		}
	}
}

// scripted is a call with one response, or none and an end.
type scripted struct {
	client.ProxyService_ProxyClient
	answer *client.Packet
}

func (*scripted) Send(*client.Packet) error { return nil }

func (s *scripted) Recv() (*client.Packet, error) {
	if s.answer == nil {
		return nil, io.ErrUnexpectedEOF
	}
	return s.answer, nil
}
