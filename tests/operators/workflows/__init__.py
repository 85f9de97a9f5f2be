"""Kinds whose controllers ask what ran inside their pods: Tekton's PipelineRun, Argo's Workflow."""
