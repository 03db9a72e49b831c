package server

import (
	"context"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// buildAudit makes the auditor, which records requests. It stops after the last request, and then delivers the
// remaining events.
func (p *process) buildAudit(context.Context) error {
	options := config.AuditOptions(&p.config.Audit)
	options.Webhook.Dial = p.host.Egress.Selected(egress.ControlPlane)
	auditor, err := audit.New(options, p.log)
	if err != nil {
		return fmt.Errorf("%w: correct the file, or the flag that names it", err)
	}
	if auditor == nil {
		if a := &p.config.Audit; a.PolicyFile != "" || a.LogFile != "" || a.WebhookConfigFile != "" {
			p.log.Warn("no request is recorded: that takes --audit-policy-file, and --audit-log-path or --audit-webhook-config-file")
		}
		return nil
	}
	p.auditor = auditor
	p.host.Metrics.MustRegister(auditor.Collectors()...)
	p.libraries = append(p.libraries, audit.LibraryMetrics()...)
	p.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), p.config.ShutdownTimeout)
		defer cancel()
		return auditor.Shutdown(ctx)
	})
	return auditor.Run()
}
