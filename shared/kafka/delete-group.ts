import { createAdmin, type KafkaConnection } from './client.ts'

/** Deletes the group of a reader that has left. An empty group without commits goes away by itself in time; this keeps the list of groups short. */
export async function deleteGroup(connection: KafkaConnection, groupId: string): Promise<void> {
  try {
    // Few tries: a process that ends while Kafka is away must end all the same.
    const admin = await createAdmin(connection, { retries: 1 })
    try {
      await admin.deleteGroups([groupId])
    } finally {
      await admin.close()
    }
  } catch (error) {
    connection.log('debug', 'the group of a reader was not deleted', { groupId, message: String(error) })
  }
}
