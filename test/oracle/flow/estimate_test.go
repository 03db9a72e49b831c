package flow

import (
	"context"
	"math/rand/v2"
	"net/url"
	"strconv"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	upstream "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/request"
)

// TestEstimate compares the seats of lists, watches and writes, for collections with objects of one size: then
// Kubernetes' estimate for a list equals the real work. Ours differs where Kubernetes would read etcd: ours never does,
// so it charges a list for no more objects than are in memory at once.
func TestEstimate(t *testing.T) {
	t.Parallel()
	alice := &user.DefaultInfo{Name: "alice", Groups: []string{user.AllAuthenticated}}
	targets := []string{"/api/v1/pods", "/api/v1/pods?limit=3", "/api/v1/pods?limit=500&resourceVersion=0",
		"/api/v1/pods?watch=1", "/api/v1/pods?watch=1&resourceVersion=7", "/api/v1/pods?watch=1&resourceVersion=0",
		"/api/v1/pods?watch=true&resourceVersion=7&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		"/api/v1/pods?watch=1&resourceVersion=", "/api/v1/pods?labelSelector=a%3Db",
		"/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Da", "/api/v1/namespaces/n/pods/a",
		"/api/v1/namespaces/n/pods/a/status", "/api/v1/namespaces/n/serviceaccounts/a/token", "/version"}
	for seed := range cases(t, 200) {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		count, size := int64(r.IntN(3000)), int64(1+r.IntN(4000))
		known := r.IntN(8) > 0
		tracker := flowcontrol.NewWatchTracker()
		c := flow.New(flow.Options{Total: 6000, Weigh: func(info *request.Info, query string) (int64, bool) {
			n := count
			values, _ := url.ParseQuery(query)
			if limit, err := strconv.ParseInt(values.Get("limit"), 10, 64); err == nil {
				n = min(n, limit)
			}
			if info.Name != "" {
				n = 1
			}
			return n * size, known
		}, Narrow: func(info *request.Info) bool {
			return info.Resource == "pods" && info.FieldSelector == "spec.nodeName=x"
		}, Unseen: func(info *request.Info) bool { return info.Subresource == "token" }})
		there := fcrequest.NewWorkEstimator(func(string) (storage.Stats, error) {
			if !known {
				return storage.Stats{}, fcrequest.ObjectCountNotFoundErr
			}
			return storage.Stats{ObjectCount: count, EstimatedAverageObjectSizeBytes: size}, nil
		}, tracker.GetInterestedWatchCount, fcrequest.DefaultWorkEstimatorConfig(), func(string) uint64 { return 0 })
		watches := []string{"/api/v1/pods?watch=1", "/api/v1/namespaces/n/pods?watch=1",
			"/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dx", "/api/v1/services?watch=1",
			"/api/v1/namespaces/n/pods?watch=1&fieldSelector=metadata.name%3Da"}
		for range r.IntN(80) {
			q := ask(t, "GET", one(r, watches), alice)
			tracker.RegisterWatch(q.r.WithContext(upstream.WithRequestInfo(q.r.Context(), q.there)))
			ticket := new(flow.Ticket)
			_ = c.Admit(context.Background(), ticket, q.r, q.info, q.user)
			ticket.Release()
		}
		for range 40 {
			q := ask(t, one(r, []string{"GET", "GET", "PUT", "POST", "DELETE", "PATCH"}), one(r, targets), alice)
			want := there(q.r.WithContext(upstream.WithRequestInfo(q.r.Context(), q.there)), "schema", "level")
			var ticket flow.Ticket
			if !c.Admit(context.Background(), &ticket, q.r, q.info, q.user) {
				t.Fatalf("seed %d: rejected", seed)
			}
			seats, final, linger := ticket.Cost()
			want.InitialSeats = min(want.InitialSeats, 10)
			if seats != int(want.InitialSeats) || final != int(want.FinalSeats) || linger != want.AdditionalLatency {
				t.Errorf("seed %d: %s %s of %d × %d bytes: %d seats, %d for %s; want %+v", seed, q.r.Method, q.r.URL,
					count, size, seats, final, linger, want)
			}
			c.Done(&ticket)
		}
	}
}
