package agent

import (
	"context"
	"testing"

	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// TestDialBounds has a server want more connections than an agent opens.
func TestDialBounds(t *testing.T) {
	request := &client.DialRequest{Protocol: "tcp", Address: "127.0.0.1:1", Random: 1 << 40}
	for name, fill := range map[string]func(*session){
		"dials": func(s *session) {
			for i := range int64(maxDials) {
				s.mu.dials[i] = func() {}
			}
		},
		"connections": func(s *session) {
			for i := range int64(maxFar) {
				s.mu.far[i] = &far{}
			}
		},
		"the same": func(s *session) { s.mu.dials[request.Random] = func() {} },
	} {
		s := &session{ctx: t.Context()}
		s.mu.far, s.mu.dials = map[int64]*far{}, map[int64]context.CancelFunc{}
		fill(s)
		if s.dial(request) == "" {
			t.Errorf("%s: one more is dialled", name)
		}
	}
}
