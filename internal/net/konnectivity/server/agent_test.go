package server

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// wire is a call of Connect without a network.
type wire struct {
	konnectivity.AgentStream
	ctx      context.Context
	toServer chan *client.Packet // closed when the agent ends
	toAgent  chan *client.Packet
}

func (w *wire) Context() context.Context { return w.ctx }

func (w *wire) Send(p *client.Packet) error {
	select {
	case w.toAgent <- p:
		return nil
	case <-w.ctx.Done():
		return io.EOF
	}
}

func (w *wire) Recv() (*client.Packet, error) {
	p, ok := <-w.toServer
	if !ok {
		return nil, io.EOF
	}
	return p, nil
}

// TestEstablishedModel compares the gauge of connections with a model, through agents that answer at random: with
// fresh numbers, with errors, twice, with numbers in use, unasked.
func TestEstablishedModel(t *testing.T) {
	reused := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		s := New(Config{Metrics: NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		w := &wire{ctx: ctx, toServer: make(chan *client.Packet), toAgent: make(chan *client.Packet, 10_000)}
		a := newAgent(s, "a", konnectivity.Identifiers{}, w)
		go a.outbox.Run()
		ended := make(chan error)
		go func() { ended <- a.receive() }()
		open, last, broken := map[int64]*link{}, int64(0), false
		var all []*link
		established := func() int {
			var m dto.Metric
			if err := s.config.Metrics.established.Write(&m); err != nil {
				t.Fatal(err)
			}
			return int(m.GetGauge().GetValue())
		}
		// send has the server handle a packet: the next one is taken only then.
		send := func(p *client.Packet) {
			for _, p := range []*client.Packet{p, konnectivity.CloseResponse(-1, "")} {
				select {
				case w.toServer <- p:
				case err := <-ended:
					if err != errReused {
						t.Fatalf("seed %d: %v", seed, err)
					}
					broken = true
					return
				}
			}
		}
		for range 60 {
			id := 1 + random.Int64N(last+1) // open, closed or never used
			switch random.IntN(6) {
			case 0, 1: // an API server dials
				answer := make(chan dialled, 1)
				dialling, giveUp := context.WithCancel(ctx)
				go func() {
					l, err := a.dial(dialling, "a:1")
					answer <- dialled{link: l, err: err}
				}()
				packet := <-w.toAgent
				for packet.Type != client.PacketType_DIAL_REQ {
					packet = <-w.toAgent
				}
				number, used := id, open[id] != nil
				if random.IntN(8) > 0 {
					last++
					number, used = last, false
				}
				failure := strings.Repeat("no", random.IntN(3)/2)
				if random.IntN(4) == 0 {
					giveUp()
				}
				send(konnectivity.DialResponse(packet.GetDialRequest().GetRandom(), number, failure))
				d := <-answer
				giveUp()
				if d.link != nil {
					open[number], all = d.link, append(all, d.link)
				}
				if used && failure == "" {
					reused++
					if !broken {
						t.Fatalf("seed %d: a number was used twice", seed)
					}
				}
			case 2: // an API server closes
				if l := open[id]; l != nil {
					l.close()
					delete(open, id)
				}
			case 3:
				send(konnectivity.CloseResponse(id, ""))
				if !broken {
					delete(open, id)
				}
			case 4:
				send(konnectivity.Data(id, []byte("x")))
			case 5:
				if open[id] == nil {
					send(konnectivity.DialResponse(random.Int64(), id, ""))
				}
			}
			if broken {
				break
			}
			if got := established(); got != len(open) {
				t.Fatalf("seed %d: %d connections are counted, %d are open", seed, got, len(open))
			}
		}
		if !broken {
			close(w.toServer)
			<-ended
		}
		a.leave()
		for _, l := range all { // as fronts do
			l.close()
		}
		if got := established(); got != 0 || a.held.Bytes() != 0 {
			t.Fatalf("seed %d: at the end %d connections are counted, and %d bytes", seed, got, a.held.Bytes())
		}
		cancel()
	}
	if reused == 0 {
		t.Error("no number was used twice: the test is too small")
	}
}
