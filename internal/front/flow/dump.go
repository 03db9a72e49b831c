package flow

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bowsprit/bowsprit/internal/front/flow/queue"
)

// Pages returns the debug pages by path, in kube-apiserver's format.
func (c *Controller) Pages() map[string]http.HandlerFunc {
	const below = "/debug/api_priority_and_fairness/"
	return map[string]http.HandlerFunc{
		below + "dump_priority_levels": c.page(c.dumpLevels),
		below + "dump_queues":          c.page(c.dumpQueues),
		below + "dump_requests":        c.page(c.dumpRequests),
	}
}

// page shows a table.
func (c *Controller) page(dump func(t *table, levels []*level, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		levels := slices.Collect(maps.Values(c.levels))
		c.mu.Unlock()
		slices.SortFunc(levels, func(a, b *level) int { return strings.Compare(a.name, b.name) })
		t := &table{tabwriter.NewWriter(w, 8, 0, 1, ' ', 0)}
		dump(t, levels, r)
		_ = t.Flush() // on error the client has disconnected
	}
}

type table struct{ *tabwriter.Writer }

func (t *table) row(columns ...any) {
	for i, column := range columns {
		if i > 0 {
			_, _ = io.WriteString(t, ",\t")
		}
		_, _ = fmt.Fprint(t, column)
	}
	_, _ = io.WriteString(t, "\n")
}

func (c *Controller) dumpLevels(t *table, levels []*level, _ *http.Request) {
	t.row("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
		"DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests")
	for _, l := range levels {
		queues, _ := l.set.Dump()
		active := 0
		for _, q := range queues {
			active += index(len(q.Requests) > 0)
		}
		var dispatched, rejected, cancelled uint64
		var u queue.Usage
		c.mu.Lock()
		quiescing := l.quiescing
		l.set.Locked(func(usage queue.Usage, _ queue.Progress) {
			u = usage
			for _, k := range l.classes {
				dispatched += k.counts.Dispatched
				cancelled += k.counts.Rejected[queue.Wait]
				for _, n := range k.counts.Rejected {
					rejected += n
				}
			}
		})
		c.mu.Unlock()
		t.row(l.name, active, u.Waiting+u.Executing+u.Paused == 0, quiescing, u.Waiting, u.Executing, dispatched,
			rejected, 0, cancelled)
	}
}

func (c *Controller) dumpQueues(t *table, levels []*level, _ *http.Request) {
	t.row("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
		"InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum")
	for _, l := range levels {
		queues, _ := l.set.Dump()
		for i, q := range queues {
			t.row(l.name, i, len(q.Requests), q.Executing, q.Seats, q.NextR, q.InitialSeats, q.MaxSeats, q.Work)
		}
	}
}

func (c *Controller) dumpRequests(t *table, levels []*level, r *http.Request) {
	details := r.URL.Query().Get("includeRequestDetails") != ""
	head := []any{"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher",
		"ArriveTime", "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"}
	if details {
		head = append(head, "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource",
			"SubResource")
	}
	t.row(head...)
	for _, l := range levels {
		show := func(i, j int, q queue.RequestDump) { t.row(requestRow(l, i, j, q, details)...) }
		queues, loose := l.set.Dump()
		for i, q := range queues {
			for j, waiting := range q.Requests {
				show(i, j, waiting)
			}
			for _, running := range q.Running {
				show(i, -1, running)
			}
		}
		for _, running := range loose {
			show(-1, -1, running)
		}
	}
}

func requestRow(l *level, i, j int, q queue.RequestDump, details bool) []any {
	t := q.Info.(*Ticket)
	row := []any{l.name, t.schema.name, i, j, q.Flow, q.Arrived.UTC().Format(time.RFC3339Nano), q.Seats, q.FinalSeats,
		q.Linger, q.Started.UTC().Format(time.RFC3339Nano)}
	if !details {
		return row
	}
	version := t.info.Version
	if t.info.Group != "" {
		version = t.info.Group + "/" + version
	}
	return append(row, t.user.GetName(), t.info.Verb, t.info.Path, t.info.Namespace, t.info.Name, version,
		t.info.Resource, t.info.Subresource)
}
