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
func (b *built) buildAudit(context.Context) error {
	options := config.AuditOptions(&b.config.Audit)
	options.Webhook.Dial = b.host.Egress.Selected(egress.ControlPlane)
	auditor, err := audit.New(options, b.log)
	if err != nil {
		return fmt.Errorf("%w: correct the file, or the flag that names it", err)
	}
	if auditor == nil {
		if a := &b.config.Audit; a.PolicyFile != "" || a.LogFile != "" || a.WebhookConfigFile != "" {
			b.log.Warn("no request is recorded: that takes --audit-policy-file, and --audit-log-path or --audit-webhook-config-file")
		}
		return nil
	}
	b.auditor = auditor
	b.host.Metrics.MustRegister(auditor.Collectors()...)
	b.libraries = append(b.libraries, audit.LibraryMetrics()...)
	b.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), b.config.ShutdownTimeout)
		defer cancel()
		return auditor.Shutdown(ctx)
	})
	return auditor.Run()
}
