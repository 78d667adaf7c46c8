/** The graph of a job's stages with their states and counts, laid out by their needs. */
import '@xyflow/react/dist/style.css'
import { Graph as Dagre, layout } from '@dagrejs/dagre'
import { Paper, Text, useComputedColorScheme } from '@mantine/core'
import { Background, Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from '@xyflow/react'
import { useMemo } from 'react'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { JobView, StageView } from '../../../src/protocol/jobs/jobs.ts'
import { Progress } from './progress.tsx'
import { colourOf, State } from './state.tsx'

const size = { width: 220, height: 92 }

type StageNode = Node<{ stage: StageView }, 'stage'>

export function Graph({ job }: { job: JobView }) {
  const scheme = useComputedColorScheme('light')
  // The layout depends only on the needs, not on the states.
  const shape = JSON.stringify(job.stages.map(({ id, name, needs }) => [id, name, needs]))
  // biome-ignore lint/correctness/useExhaustiveDependencies: it depends only on the shape.
  const places = useMemo(() => placed(job.stages), [shape])
  const nodes = job.stages.map(
    (stage): StageNode => ({ id: stage.id, type: 'stage', position: places.get(stage.id)!, data: { stage } }),
  )
  return (
    <ReactFlow
      nodes={nodes}
      edges={edgesOf(job.stages)}
      nodeTypes={nodeTypes}
      colorMode={scheme}
      fitView
      minZoom={0.1}
      fitViewOptions={{ maxZoom: 1, padding: 0.15 }}
      nodesDraggable={false}
      nodesConnectable={false}
      preventScrolling={false}
      zoomOnScroll={false}
      proOptions={{ hideAttribution: true }}
    >
      <Background />
      <Controls showInteractive={false} />
    </ReactFlow>
  )
}

function edgesOf(stages: readonly StageView[]): Edge[] {
  const ids = new Map(stages.map(({ name, id }) => [name, id]))
  return stages.flatMap(({ id, needs, state }) =>
    needs.flatMap(name => {
      const source = ids.get(name)
      return source === undefined ? [] : [{ id: `${source}-${id}`, source, target: id, animated: state === 'running' }]
    }),
  )
}

function placed(stages: readonly StageView[]): ReadonlyMap<string, { x: number; y: number }> {
  const graph = new Dagre()
  graph.setGraph({ rankdir: 'LR', nodesep: 28, ranksep: 56 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const { id } of stages) graph.setNode(id, { ...size })
  for (const { source, target } of edgesOf(stages)) graph.setEdge(source, target)
  layout(graph)
  return new Map(
    stages.map(({ id }) => {
      const { x, y } = graph.node(id) as { x: number; y: number }
      return [id, { x: x - size.width / 2, y: y - size.height / 2 }]
    }),
  )
}

function StageBox({ data: { stage } }: NodeProps<StageNode>) {
  return (
    <Paper
      withBorder
      p="xs"
      w={size.width}
      h={size.height}
      style={{ borderLeft: `4px solid var(--mantine-color-${colourOf('stage', stage.state)}-6)` }}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Text fw={600} size="sm" truncate title={sanitize(stage.name)}>
        <Link href={`/stages/${stage.id}`}>{sanitize(stage.name)}</Link>
      </Text>
      <State of="stage" state={stage.state} />
      <Progress of={stage.progress} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </Paper>
  )
}

const nodeTypes = { stage: StageBox }
