import { Title } from '@mantine/core'

export function Overview() {
  return (
    <Title order={1} size="h3">
      Overview
    </Title>
  )
}
