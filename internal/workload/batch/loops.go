// Package batch implements the controllers of Jobs and CronJobs for a server that simulates workloads.
//
// job.go reconciles a Job step by step. The pure parts have files of their own: the indexes, the policies, the
// back-offs, the status. Conditions, events, names and labels are those of Kubernetes 1.36.
package batch

import (
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Part brings the controllers.
func Part(shared *cluster.Shared) part.Part {
	return part.Part{Name: "controllers of jobs", Loops: []part.Loop{
		cluster.Loop("job-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			return newJobs(c, shared.Of(c.Host))
		}),
		cluster.Loop("ttl-after-finished-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			return &expiry{c, shared.Of(c.Host)}
		}),
		cluster.Loop("cronjob-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			return &cronJobs{Cluster: c, index: shared.Of(c.Host)}
		}),
	}}
}

// workers is how many objects of a kind are worked on at the same time.
const workers = 5
