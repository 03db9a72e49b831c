// Package audit writes the audit log: an event for each stage of a request, at the level set by the policy of
// --audit-policy-file, for the backends of --audit-log-path and --audit-webhook-config-file.
//
// It is a step of package front, after authentication. An Auditor evaluates the policy for each request and returns a
// Record for selected ones. Package front reports the stages of the request to the Record. Packages below front use it
// as request.Record to add annotations, request objects and response objects.
//
// Policies, events, batching, truncation and the webhook are Kubernetes' own libraries. The log file and the encoding
// of its lines are implemented here (file.go, log.go), because they are on the path of every recorded request. A rule
// with changes: JSONPatch records the patch of a write instead of the objects (patch.go, docs/design/audit.md).
//
// An Auditor and a Record are safe for concurrent use.
package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Auditor records requests.
type Auditor struct {
	policy  audit.PolicyRuleEvaluator
	backend audit.Backend
	log     recorder     // backend, if it is a log file in a blocking mode; else nil
	close   func() error // of the log file
	now     func() time.Time
	logger  *slog.Logger

	stopping chan struct{} // closed by Shutdown; backends then deliver pending events and end
	stopOnce sync.Once

	users   users
	peers   peers
	metrics *metrics
}

// New returns an Auditor, or nil if nothing would be recorded: without a policy, or without a backend. An invalid
// policy is an error even without a backend.
func New(o Options, log *slog.Logger) (*Auditor, error) {
	if o.PolicyFile == "" {
		return nil, nil
	}
	evaluator, err := loadPolicy(o.PolicyFile)
	if err != nil || !o.enabled() {
		return nil, err
	}
	backend, closeLog, err := o.backend()
	if err != nil {
		return nil, err
	}
	a := newAuditor(evaluator, backend, log)
	a.close = closeLog
	return a, nil
}

func newAuditor(evaluator audit.PolicyRuleEvaluator, backend audit.Backend, logger *slog.Logger) *Auditor {
	direct, _ := backend.(recorder)
	return &Auditor{
		policy: evaluator, backend: backend, log: direct, now: time.Now, logger: logger,
		close:    func() error { return nil },
		stopping: make(chan struct{}), metrics: newMetrics(),
	}
}

// Run starts the backends.
func (a *Auditor) Run() error { return a.backend.Run(a.stopping) }

// Shutdown delivers pending events and closes the log. Call it when no request runs any more. If ctx ends first, the
// remaining events are lost, and the error reports it.
func (a *Auditor) Shutdown(ctx context.Context) error {
	delivered := make(chan struct{})
	a.stopOnce.Do(func() { close(a.stopping) })
	go func() { // it outlives Shutdown if a webhook hangs; the process ends then
		a.backend.Shutdown()
		close(delivered)
	}()
	select {
	case <-delivered:
		return a.close()
	case <-ctx.Done():
		a.logger.Error("audit events were not delivered before the end of shutdown; they are lost", "backend",
			a.backend.String(), "error", ctx.Err())
		return errors.Join(fmt.Errorf("deliver audit events: %w", ctx.Err()), a.close())
	}
}

// Collectors are the metrics of auditing, under kube-apiserver's names.
func (a *Auditor) Collectors() []prometheus.Collector { return a.metrics.collectors() }

// Received describes a new request for the policy.
type Received struct {
	HTTP *http.Request
	Info *request.Info
	User user.Info // nil if authentication failed
	ID   string
	At   time.Time
	// LongRunning is true if the request has no time limit. Then the start of its response is a stage.
	LongRunning bool
	// Flushed is true if Flush is called before the answer is sent.
	Flushed bool
	// Memory is a Record that Clear has cleared, for use by this request; if nil, Begin allocates one.
	Memory *Record
}

// Begin returns the Record of a request, nil if the policy does not select it.
func (a *Auditor) Begin(r Received) *Record {
	config := a.evaluate(r)
	patch := config.Level == levelPatch
	if patch {
		config.Level = auditapi.LevelRequestResponse
	}
	a.metrics.requested(config.Level)
	if config.Level == auditapi.LevelNone {
		return nil
	}
	rec := r.Memory
	if rec == nil {
		rec = new(Record)
	}
	rec.auditor, rec.library = a, libraryOf(r.HTTP.Context())
	rec.longRunning, rec.patch = r.LongRunning, patch
	rec.omit, rec.omitManagedFields = config.OmitStages, config.OmitManagedFields
	rec.annotations, rec.flushed = rec.memory.annotations[:0], r.Flushed
	rec.event.Level, rec.event.AuditID = config.Level, types.UID(r.ID)
	rec.event.RequestReceivedTimestamp = metav1.NewMicroTime(r.At)
	a.describe(rec, &r)
	return rec
}

// evaluate evaluates the policy.
func (a *Auditor) evaluate(r Received) audit.RequestAuditConfig {
	if same, ok := a.policy.(constant); ok {
		return audit.RequestAuditConfig(same)
	}
	return a.ask(r)
}

// ask is a separate function because it allocates r.
//
//go:noinline
func (a *Auditor) ask(r Received) audit.RequestAuditConfig {
	return a.policy.EvaluatePolicyRule(attributes{&r})
}

// Rejected counts a request that was refused because it could not be recorded (mode blocking-strict).
func (a *Auditor) Rejected() { a.metrics.rejected.Inc() }

// Flush writes the lines held for the log file. A connection calls it before it sends responses, so that a read is in
// the log before its client has the response (Received.Flushed). A nil Auditor does nothing.
func (a *Auditor) Flush() {
	if a != nil && a.log != nil {
		a.log.flushHeld()
	}
}

// deliver hands the event of a record to the backends and reports whether they took it.
func (a *Auditor) deliver(r *Record) bool {
	a.metrics.events.Inc()
	if a.log != nil {
		return a.log.record(&r.event, r.extras)
	}
	r.event.Annotations = r.annotations.asMap()
	return a.backend.ProcessEvents(answered(&r.event, r.code))
}

// omits reports whether a stage is not recorded.
func omits(stages []auditapi.Stage, stage auditapi.Stage) bool { return slices.Contains(stages, stage) }
