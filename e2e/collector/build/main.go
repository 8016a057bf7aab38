// An OpenTelemetry Collector: its own receiver of OTLP, and one line of OTLP JSON on standard output for each batch of
// spans.
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// lines writes what it gets.
type lines struct {
	component.StartFunc
	component.ShutdownFunc
}

func (lines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (lines) ConsumeTraces(_ context.Context, traces ptrace.Traces) error {
	line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	if err == nil {
		_, err = fmt.Fprintf(os.Stdout, "%s\n", line)
	}
	return err
}

func newLines(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
	return lines{}, nil
}

func factories() (otelcol.Factories, error) {
	type config struct{}
	otlp := otlpreceiver.NewFactory()
	out := exporter.NewFactory(component.MustNewType("lines"), func() component.Config { return &config{} },
		exporter.WithTraces(newLines, component.StabilityLevelDevelopment))
	return otelcol.Factories{
		Receivers: map[component.Type]receiver.Factory{otlp.Type(): otlp},
		Exporters: map[component.Type]exporter.Factory{out.Type(): out},
		Telemetry: otelconftelemetry.NewFactory(),
	}, nil
}

func main() {
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "for tests", Version: "0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
			DefaultScheme:     "file",
		}},
	}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
