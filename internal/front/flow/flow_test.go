package flow

import (
	"context"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// BenchmarkAdmit admits requests that need not wait, under Kubernetes' own schemas.
func BenchmarkAdmit(b *testing.B) {
	for _, c := range []struct {
		name string
		user user.Info
	}{
		{"user", &user.DefaultInfo{Name: "alice", Groups: []string{"dev", user.AllAuthenticated}}},
		{"master", &user.DefaultInfo{
			Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
		}},
		{"account", &user.DefaultInfo{Name: "system:serviceaccount:default:a", Groups: []string{
			"system:serviceaccounts", "system:serviceaccounts:default", user.AllAuthenticated,
		}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := New(Options{Total: 600})
			f.Configure(slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas),
				slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations,
					bootstrap.SuggestedPriorityLevelConfigurations))
			r := httptest.NewRequest("GET", "/apis/stable.example.com/v1/namespaces/default/crontabs/my-cron", nil)
			info, err := request.Parse(r)
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					t := &Ticket{}
					if !f.Admit(ctx, t, r, info, c.user) {
						b.Fatal("turned away")
					}
					f.Done(t)
				}
			})
		})
	}
}
